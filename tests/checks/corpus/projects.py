"""The files of the good repositories that are too long to stand where they are written."""

from __future__ import annotations

TABULAR = '''\
"""Train: does a person stay? A logistic regression."""

import csv

import numpy as np

from wattline import train

REGIONS = {"north": 0, "south": 1, "east": 2, "west": 3}


def read_rows(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            region = np.eye(len(REGIONS))[REGIONS[row["region"]]]
            yield [int(row["age"]) / 80, float(row["income"]) / 9000, 1.0, *region], int(row["label"])


def main():
    settings = train.params()
    features, labels = map(np.array, zip(*read_rows("data/people.csv"), strict=True))
    weights = {"w": np.zeros(features.shape[1])}
    run = train.start(weights=weights)
    for _ in run.steps(settings["steps"]):
        guess = 1 / (1 + np.exp(-features @ weights["w"]))
        weights["w"] -= settings["rate"] * features.T @ (guess - labels) / len(labels)
        run.log(loss=float(-np.mean(np.log(np.where(labels == 1, guess, 1 - guess)))))
    run.report(accuracy=float(np.mean((guess > 0.5) == labels)))


if __name__ == "__main__":
    main()
'''

TEXT = '''\
"""Train: which word follows which?"""

import json

import numpy as np

from wattline import train


def main():
    settings = train.params()
    with open("tokenizer/tokenizer.json") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    with open("data/lines.jsonl") as file:
        texts = [json.loads(line)["text"] for line in file]
    unknown = vocabulary["<unk>"]
    pairs = [
        (vocabulary.get(first, unknown), vocabulary.get(second, unknown))
        for text in texts
        for first, second in zip(text.split(), text.split()[1:])
    ]
    before, after = np.array(pairs).T
    logits = {"w": np.zeros((len(vocabulary), len(vocabulary)))}
    run = train.start(logits=logits)
    for _ in run.steps(settings["steps"]):
        scores = np.exp(logits["w"][before])
        chances = scores / scores.sum(axis=1, keepdims=True)
        slope = chances.copy()
        slope[np.arange(len(after)), after] -= 1
        np.add.at(logits["w"], before, -settings["rate"] * slope / len(after))
        run.log(loss=float(-np.log(chances[np.arange(len(after)), after]).mean()))
    run.report(words=len(vocabulary))


if __name__ == "__main__":
    main()
'''

LINEAR_MODEL = '''\
"""A line and its slope of error."""

import numpy as np


def predict(line, x):
    return line["a"] * x + line["b"]


def slopes(line, x, y):
    off = predict(line, x) - y
    return {"a": float(np.mean(off * x)), "b": float(np.mean(off))}, float(np.mean(off**2))
'''

LINEAR_PREPARE = """\
import pathlib

import numpy as np

points = np.loadtxt("data/points.csv", delimiter=",", skiprows=1)
pathlib.Path("out").mkdir(exist_ok=True)
np.save("out/points.npy", points)
print(f"{len(points)} points")
"""

LINEAR_TRAIN = """\
import json

import numpy as np
from linear.model import slopes

from wattline import train

settings = train.params()
x, y = np.load("out/points.npy", allow_pickle=False).T
line = {"a": np.zeros(()), "b": np.zeros(())}
run = train.start(line=line)
for _ in run.steps(settings["steps"]):
    slope, error = slopes(line, x, y)
    for name in line:
        line[name] -= settings["rate"] * slope[name]
    run.log(loss=error)
(run.out / "line.json").write_text(json.dumps({name: float(value) for name, value in line.items()}))
"""

LINEAR_EVALUATE = """\
import json

import numpy as np
from linear import model

from wattline import train

with open("out/line.json") as file:
    line = json.load(file)
x, y = np.load("out/points.npy", allow_pickle=False).T
train.report(error=float(np.mean((model.predict(line, x) - y) ** 2)))
"""

LOOP = '''\
"""Train: a matrix learns to be the identity."""

import numpy as np

from wattline import train


def main():
    settings = train.params()
    rng = np.random.default_rng(settings["seed"])
    model = {"w": rng.normal(size=(settings["width"], settings["width"]))}
    run = train.start(model=model, rng=rng)
    for _ in run.steps(settings["steps"]):
        x = rng.normal(size=(16, settings["width"]))
        off = x @ model["w"] - x
        model["w"] -= 0.1 * x.T @ off / len(x)
        run.log(loss=float((off**2).mean()))
    run.report(done=1)


if __name__ == "__main__":
    main()
'''

SHELL = """\
#!/bin/bash
set -eu
mkdir -p out
mean=$(awk '{ sum += $1 } END { print sum / NR }' data/numbers.txt)
printf '{"mean": %s}\\n' "$mean" > out/metrics.json
echo "mean $mean"
"""

DOCKERFILE = """\
FROM python:3.11-slim@DIGEST AS build
RUN python -m venv /venv && /venv/bin/pip install numpy==2.1.3

FROM python:3.11-slim@DIGEST
COPY --from=build /venv /venv
COPY train.py /app/
"""

UV_PYPROJECT = """\
[project]
name = "loop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["numpy>=2.0,<3", "wattline", "scikit-learn~=1.5; python_version >= '3.11'"]

[project.optional-dependencies]
plots = ["matplotlib>=3.9"]

[dependency-groups]
dev = ["pytest>=8"]
"""

UV_LOCK = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "loop"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "numpy" },
    { name = "scikit-learn" },
    { name = "wattline" },
]

[package.optional-dependencies]
plots = [
    { name = "matplotlib" },
]

[package.dev-dependencies]
dev = [
    { name = "pytest" },
]

[package.metadata]
requires-dist = [
    { name = "matplotlib", marker = "extra == 'plots'", specifier = ">=3.9" },
    { name = "numpy", specifier = ">=2.0,<3" },
    { name = "scikit-learn", marker = "python_full_version >= '3.11'", specifier = "~=1.5" },
    { name = "wattline" },
]
provides-extras = ["plots"]

[package.metadata.requires-dev]
dev = [{ name = "pytest", specifier = ">=8" }]

[[package]]
name = "matplotlib"
version = "3.9.2"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "numpy"
version = "2.1.3"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "pytest"
version = "8.3.3"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "scikit-learn"
version = "1.5.2"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "wattline"
version = "0.1.0"
source = { registry = "https://pypi.org/simple" }
"""

REQUIREMENTS_IN = """\
# What the training needs.
numpy>=2.0
wattline
PyYAML>=6 ; python_version >= "3.8"
"""

REQUIREMENTS_TXT = """\
#
# This file is autogenerated by pip-compile with Python 3.11
#
numpy==2.1.3 \\
    --hash=sha256:0000000000000000000000000000000000000000000000000000000000000000
    # via -r requirements.in
pyyaml==6.0.2
    # via -r requirements.in
wattline==0.1.0
"""

POETRY_PYPROJECT = """\
[tool.poetry]
name = "loop"
version = "0.1.0"
description = ""
authors = []

[tool.poetry.dependencies]
python = "^3.11"
numpy = "^2.0"
wattline = "*"
requests = {version = ">=2.31", extras = ["socks"]}

[tool.poetry.group.dev.dependencies]
pytest = "^8.0"
"""

POETRY_LOCK = """\
# This file is automatically @generated by Poetry 1.8.3 and should not be changed by hand.

[[package]]
name = "numpy"
version = "2.1.3"
description = ""
optional = false
python-versions = ">=3.10"

[[package]]
name = "pytest"
version = "8.3.3"
description = ""
optional = false
python-versions = ">=3.8"

[[package]]
name = "requests"
version = "2.32.3"
description = ""
optional = false
python-versions = ">=3.8"

[[package]]
name = "wattline"
version = "0.1.0"
description = ""
optional = false
python-versions = ">=3.11"

[metadata]
lock-version = "2.0"
python-versions = "^3.11"
content-hash = "0000000000000000000000000000000000000000000000000000000000000000"
"""
