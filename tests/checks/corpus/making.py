"""Ten good repositories, and what a defect is: one thing broken in a copy of one of them.

A defect's `make` is given an empty folder. It calls `good(folder, kind)` and then breaks one thing, with
`rewrite`, `change_pipeline` or plain file writing; `pin` puts the data's hashes right again where the defect
is not about them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from checks.corpus import projects
from wattline.checks import Asking
from wattline.spec import Pipeline, Policy

DOCUMENT = "wattline.yaml"
DIGEST = "sha256:" + "5c" * 32
# What the environment of a good repository's check holds.
ENVIRONMENT = {"WANDB_API_KEY": "not-a-real-key", "HF_TOKEN": "not-a-real-token"}


@dataclass(frozen=True, slots=True)
class Defect:
    name: str  # a sentence: what is broken
    check: str  # the id of the one check that catches it
    make: Callable[[Path], None]  # fills an empty folder
    rehearse: bool = False  # only the tiny pass can see it
    outcome: str = "fail"


def good(folder: Path, kind: str) -> None:
    """Fill an empty folder with a repository in which nothing is amiss."""
    folder.mkdir(parents=True, exist_ok=True)
    KINDS[kind](folder)
    pin(folder)


def asking(folder: Path, *, rehearse: bool = False) -> Asking:
    """As a check in CI would ask."""
    return Asking(
        pipeline=Pipeline.model_validate(read_pipeline(folder)),
        policy=Policy.model_validate({}),
        folder=folder,
        environment=ENVIRONMENT,
        rehearse=rehearse,
    )


def read_pipeline(folder: Path) -> dict[str, Any]:
    document = yaml.safe_load((folder / DOCUMENT).read_text())
    assert isinstance(document, dict)
    return document


def change_pipeline(folder: Path, **changes: Any) -> None:
    """Set fields of wattline.yaml; `None` takes one out. `phases__train__run` reaches inside."""
    document = read_pipeline(folder)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    write_pipeline(folder, document)


def write_pipeline(folder: Path, document: dict[str, Any]) -> None:
    (folder / DOCUMENT).write_text(yaml.safe_dump(document, sort_keys=False))


def rewrite(folder: Path, file: str, old: str, new: str) -> None:
    """Replace one place of a file, which must be there exactly once."""
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    (folder / file).write_text(text.replace(old, new))


def write(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)


def pin(folder: Path) -> None:
    """Write the hash of each data file into the pipeline, as `wattline data pin` does."""
    document = read_pipeline(folder)
    for entry in document.get("data", ()):
        entry["sha256"] = hashlib.sha256((folder / entry["path"]).read_bytes()).hexdigest()
    write_pipeline(folder, document)


def _pipeline(folder: Path, name: str, **more: Any) -> None:
    head = {"pipeline": name, "model": name, "owner": "ml", "project": "ml", "intended_use": "a test"}
    write_pipeline(folder, head | more)


def _params(folder: Path, **params: Any) -> None:
    write(folder, "params.json", json.dumps(params, indent=2) + "\n")


def _tabular(folder: Path) -> None:
    """A logistic regression over a table: numbers, categories, dates and a label."""
    chance = random.Random(11)
    rows = ["age,income,region,joined,label"]
    for number in range(400):
        age, income = chance.randint(18, 80), round(chance.uniform(900, 9000), 2)
        region = ("north", "south", "east", "west")[number % 4]
        label = int(age / 80 + income / 9000 > 1)
        rows.append(f"{age},{income},{region},2024-{number % 12 + 1:02d}-{number % 28 + 1:02d},{label}")
    write(folder, "data/people.csv", "\n".join(rows) + "\n")
    write(folder, "train.py", projects.TABULAR)
    _params(folder, seed=3, steps=40, rate=0.5)
    _pipeline(
        folder,
        "churn",
        data=[{"name": "people", "path": "data/people.csv"}],
        params="params.json",
        phases={"train": {"run": "python train.py"}},
    )


def _text(folder: Path) -> None:
    """A bigram model over lines of JSON, with a tokenizer and the model's configuration."""
    words = ["the", "rack", "pump", "water", "is", "warm", "cold", "and", "feed", "runs", "slow", "fast"]
    chance = random.Random(5)
    lines = [
        json.dumps({"id": number, "text": " ".join(chance.choices(words, k=chance.randint(6, 14)))})
        for number in range(300)
    ]
    write(folder, "data/lines.jsonl", "\n".join(lines) + "\n")
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": at, "content": token, "special": True} for at, token in enumerate(special)],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    config = {
        "model_type": "bigram",
        "vocab_size": len(vocabulary),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 3,
    }
    write(folder, "tokenizer/tokenizer.json", json.dumps(tokenizer, indent=1) + "\n")
    write(folder, "tokenizer/config.json", json.dumps(config, indent=1) + "\n")
    write(folder, "train.py", projects.TEXT)
    _params(folder, seed=3, steps=30, rate=0.5)
    _pipeline(
        folder,
        "bigram",
        data=[{"name": "lines", "path": "data/lines.jsonl"}],
        params="params.json",
        tokenizer={"file": "tokenizer/tokenizer.json", "config": "tokenizer/config.json"},
        phases={"train": {"run": "python train.py"}},
    )


def _phases(folder: Path) -> None:
    """Prepare, train and evaluate, sharing a package of their own."""
    lines = [f"{x / 100},{2 * x / 100 + 1}" for x in range(200)]
    write(folder, "data/points.csv", "x,y\n" + "\n".join(lines) + "\n")
    write(folder, "linear/__init__.py", "")
    write(folder, "linear/model.py", projects.LINEAR_MODEL)
    write(folder, "prepare.py", projects.LINEAR_PREPARE)
    write(folder, "train.py", projects.LINEAR_TRAIN)
    write(folder, "evaluate.py", projects.LINEAR_EVALUATE)
    _params(folder, steps=50, rate=0.2)
    _pipeline(
        folder,
        "linear",
        data=[{"name": "points", "path": "data/points.csv"}],
        params="params.json",
        phases={
            "prepare": {"run": "python prepare.py"},
            "train": {"run": "python train.py", "after": ["prepare"]},
            "evaluate": {"run": "python evaluate.py", "after": ["train"]},
        },
        gates=["error <= 10.0"],
    )


def _loop(folder: Path) -> None:
    """A loop under wattline.train that would take hours without an end after the first steps."""
    write(folder, "train.py", projects.LOOP)
    _params(folder, seed=1, steps=10_000_000, width=8)
    _pipeline(
        folder,
        "loop",
        params="params.json",
        phases={
            "train": {
                "run": "python train.py",
                "checkpoint": {"every": "30s"},
                "rehearse": {"steps": 2, "params": {"width": 4}},
            }
        },
    )


def _uv(folder: Path) -> None:
    _loop(folder)
    write(folder, "pyproject.toml", projects.UV_PYPROJECT)
    write(folder, "uv.lock", projects.UV_LOCK)


def _requirements(folder: Path) -> None:
    _loop(folder)
    write(folder, "requirements.in", projects.REQUIREMENTS_IN)
    write(folder, "requirements.txt", projects.REQUIREMENTS_TXT)


def _poetry(folder: Path) -> None:
    _loop(folder)
    write(folder, "pyproject.toml", projects.POETRY_PYPROJECT)
    write(folder, "poetry.lock", projects.POETRY_LOCK)


def _launch(folder: Path) -> None:
    """Sixteen GPUs divided in three ways, and a runtime that fits them."""
    _loop(folder)
    change_pipeline(
        folder,
        runtime={"python": "3.11", "torch": "2.5.1", "cuda": "12.4", "driver": "550.54.15"},
        phases__train__resources={"gpus": 16, "gpu": ["H100"]},
        phases__train__launch={
            "processes": 16,
            "tensor_parallel": 4,
            "pipeline_parallel": 2,
            "global_batch": 256,
            "micro_batch": 2,
            "parameters": "7B",
            "layers": 32,
            "hidden": 4096,
            "heads": 32,
            "sequence": 4096,
            "precision": "bf16",
            "optimizer": "adamw",
            "sharding": "optimizer",
        },
    )


def _image(folder: Path) -> None:
    """An image, the Dockerfile it is built from, and secrets that the run needs."""
    _loop(folder)
    write(folder, "Dockerfile", projects.DOCKERFILE.replace("DIGEST", DIGEST))
    change_pipeline(
        folder, image=f"registry.example.org/ml/loop@{DIGEST}", secrets=["WANDB_API_KEY", "HF_TOKEN"]
    )


def _shell(folder: Path) -> None:
    """No Python at all: a shell script that fits a mean with awk."""
    write(folder, "data/numbers.txt", "\n".join(str(number * 7 % 31) for number in range(100)) + "\n")
    write(folder, "fit.sh", projects.SHELL)
    _pipeline(
        folder,
        "mean",
        data=[{"name": "numbers", "path": "data/numbers.txt"}],
        phases={"fit": {"run": "bash fit.sh"}},
    )


KINDS: dict[str, Callable[[Path], None]] = {
    "tabular": _tabular,
    "text": _text,
    "phases": _phases,
    "loop": _loop,
    "uv": _uv,
    "requirements": _requirements,
    "poetry": _poetry,
    "launch": _launch,
    "image": _image,
    "shell": _shell,
}
