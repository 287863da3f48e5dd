"""Repositories in which one thing about data, its profile, params or the tokenizer is broken.

Where the profile is what should catch it, the hash is put right again: the data came anew and was pinned
without a look.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checks.corpus.making import Defect, good, pin, read_pipeline, rewrite, write_pipeline
from wattline.checks.preflight.data.profile import profile, worth_recording
from wattline.spec.data_profile import write_profile

PEOPLE, LINES = "data/people.csv", "data/lines.jsonl"
PROFILE = "data/recorded.schema.yaml"
TOKENIZER, CONFIG = "tokenizer/tokenizer.json", "tokenizer/config.json"


def recorded(folder: Path, kind: str) -> str:
    """A good repository whose data has a profile; the data's path is the answer."""
    good(folder, kind)
    return record(folder)


def record(folder: Path) -> str:
    document = read_pipeline(folder)
    (entry,) = document["data"]
    path = str(entry["path"])
    (folder / PROFILE).write_text(write_profile(worth_recording(profile(folder / path)), path))
    entry["schema"] = PROFILE
    write_pipeline(folder, document)
    return path


def drifted(kind: str, change: Callable[[str], str | bytes]) -> Callable[[Path], None]:
    """Data that was recorded, then replaced and pinned by its hash alone."""

    def make(folder: Path) -> None:
        data = folder / recorded(folder, kind)
        changed = change(data.read_text())
        data.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        pin(folder)

    return make


def rows(change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    """A change of the rows of a table, below its header."""

    def apply(text: str) -> str:
        header, *lines = text.splitlines()
        return "\n".join([header, *(",".join(change(line.split(","))) for line in lines)]) + "\n"

    return apply


def cell(at: int, change: Callable[[str], str]) -> Callable[[str], str]:
    return rows(lambda cells: [*cells[:at], change(cells[at]), *cells[at + 1 :]])


def json_lines(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[str], str]:
    return lambda text: "".join(json.dumps(change(json.loads(line))) + "\n" for line in text.splitlines())


def without_a_column(text: str) -> str:
    return "\n".join(",".join(line.split(",")[:1] + line.split(",")[2:]) for line in text.splitlines()) + "\n"


def with_nulls(text: str) -> str:
    header, *lines = text.splitlines()
    emptied = [
        line.replace(line.split(",")[1], "", 1) if at % 5 == 0 else line for at, line in enumerate(lines)
    ]
    return "\n".join([header, *emptied]) + "\n"


def with_a_category(text: str) -> str:
    return text.replace(",north,", ",nord,", 30)


def in_latin_1(folder: Path) -> None:
    good(folder, "tabular")
    for file in (PEOPLE, "train.py"):
        path = folder / file
        path.write_text(path.read_text().replace("north", "nörd"))
    data = folder / record(folder)
    data.write_bytes(data.read_text().encode("latin-1"))
    pin(folder)


def wrong_hash(folder: Path) -> None:
    good(folder, "tabular")
    rewrite(folder, PEOPLE, "age,income,region,joined,label", "age,income,region,joined,label ")


def missing_data(folder: Path) -> None:
    good(folder, "tabular")
    (folder / PEOPLE).unlink()


def missing_params(folder: Path) -> None:
    good(folder, "tabular")
    (folder / "params.json").unlink()


def missing_profile(folder: Path) -> None:
    recorded(folder, "tabular")
    (folder / PROFILE).unlink()


def broken_profile(folder: Path) -> None:
    recorded(folder, "tabular")
    rewrite(folder, PROFILE, "\nrows: 400\n", "\nrows: 400\n<<<<<<< HEAD\n")


def cut_gzip(folder: Path) -> None:
    """Packed when it was recorded, and cut off by a download since."""
    good(folder, "tabular")
    packed = folder / "data/more.csv.gz"
    packed.write_bytes(gzip.compress((folder / PEOPLE).read_bytes(), mtime=0))
    (folder / PROFILE).write_text(write_profile(worth_recording(profile(packed)), "data/more.csv.gz"))
    document = read_pipeline(folder)
    document["data"].append({"name": "more", "path": "data/more.csv.gz", "schema": PROFILE})
    write_pipeline(folder, document)
    packed.write_bytes(packed.read_bytes()[:-200])
    pin(folder)


def model(file: str, change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """A change of the tokenizer's or the model's JSON."""

    def make(folder: Path) -> None:
        good(folder, "text")
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content, indent=1) + "\n")

    return make


def cut_tokenizer(folder: Path) -> None:
    good(folder, "text")
    text = (folder / TOKENIZER).read_text()
    (folder / TOKENIZER).write_text(text[: len(text) // 2])


def missing_tokenizer(folder: Path) -> None:
    good(folder, "text")
    (folder / CONFIG).unlink()


def _share_an_id(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["pump"] = tokenizer["model"]["vocab"]["rack"]


def _drop_the_pad(tokenizer: dict[str, Any]) -> None:
    del tokenizer["model"]["vocab"]["<pad>"]
    tokenizer["added_tokens"] = [each for each in tokenizer["added_tokens"] if each["content"] != "<pad>"]


DEFECTS = [
    Defect("the data is not the data that was pinned", "data.hash", wrong_hash),
    Defect("the data is not there", "data.there", missing_data),
    Defect("the params file is not there", "params", missing_params),
    Defect("the profile that the data names is not there", "data.schema", missing_profile),
    Defect("the profile holds marks of a merge", "data.schema", broken_profile),
    Defect("a column is gone", "data.schema", drifted("tabular", without_a_column)),
    Defect("ages are words", "data.schema", drifted("tabular", cell(0, lambda age: f"{age}y"))),
    Defect("ages are in days", "data.schema", drifted("tabular", cell(0, lambda age: str(365 * int(age))))),
    Defect("one in five incomes is missing", "data.schema", drifted("tabular", with_nulls)),
    Defect("a region has another name", "data.schema", drifted("tabular", with_a_category)),
    Defect("the table is Latin-1", "data.schema", in_latin_1),
    Defect(
        "three quarters of the rows are gone",
        "data.schema",
        drifted("tabular", lambda text: "".join(text.splitlines(keepends=True)[:101])),
    ),
    Defect("the file is empty", "data.schema", drifted("tabular", lambda _: "")),
    Defect("the header is missing", "data.schema", drifted("tabular", lambda text: text.partition("\n")[2])),
    Defect(
        "commas became semicolons", "data.schema", drifted("tabular", lambda text: text.replace(",", ";"))
    ),
    Defect("a download was cut off", "data.schema", cut_gzip),
    Defect(
        "JSON lines became a page of HTML",
        "data.schema",
        drifted("text", lambda _: "<html><body>\nSign in\n</body></html>\n"),
    ),
    Defect(
        "numbers became text in JSON",
        "data.schema",
        drifted("text", json_lines(lambda row: row | {"id": str(row["id"])})),
    ),
    Defect(
        "text holds what a wrong decoder left",
        "data.schema",
        drifted("shell", lambda text: text.replace("3", "\ufffd")),
    ),
    Defect(
        "the tokenizer knows more than the model",
        "tokenizer.vocabulary",
        model(CONFIG, lambda config: config.update(vocab_size=12)),
    ),
    Defect("two tokens share an id", "tokenizer.vocabulary", model(TOKENIZER, _share_an_id)),
    Defect(
        "the end of text is an ordinary token",
        "tokenizer.special",
        model(CONFIG, lambda config: config.update(eos_token_id=7)),
    ),
    Defect(
        "beginning and end of text are swapped",
        "tokenizer.special",
        model(CONFIG, lambda config: config.update(bos_token_id=2, eos_token_id=1)),
    ),
    Defect("the padding token is missing", "tokenizer.special", model(TOKENIZER, _drop_the_pad)),
    Defect("the tokenizer was cut off", "tokenizer.file", cut_tokenizer),
    Defect("the model's configuration is not there", "tokenizer.file", missing_tokenizer),
]
