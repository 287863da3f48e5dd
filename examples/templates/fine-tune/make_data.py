"""Data: notes about incidents, each with its cause; many from everywhere, few from one's own hall.

The own hall says things its own way, which the base model has never read. Put your own files in their place
(columns text and cause), then `wattline data pin data/own.csv`. Until then `python make_data.py` writes the
same bytes every time.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 5
GENERAL, OWN = 1500, 600

# What is said of each cause: everywhere, and in the own hall only.
WORDS = {
    "power": ("breaker feed voltage battery phase meter", "kestrel stage-2 busway umspannwerk b-side sts"),
    "cooling": ("pump chiller coolant fan valve inlet", "heron cdu-7 rücklauf skid delta-t glycol"),
    "network": ("switch link packet route cable port", "magpie spine-4 optic ecmp flap fabric"),
    "storage": ("disk volume shard write mount quota", "wren oss-3 brick lustre mdt inode"),
}
ABOUT = ["alarm", "warning", "noise", "drop", "restart", "jitter", "delay", "smell", "reading", "fault"]
PLACES = ["north", "south", "east", "west", "annex", "basement"]
ENDS = [
    "again",
    "since last night",
    "after the change",
    "twice today",
    "under load",
    "while idle",
    "no idea why",
]


def note(draw: random.Random, cause: str, *, own: bool) -> str:
    general, jargon = (words.split() for words in WORDS[cause])
    # In the own hall one word in five is one that everybody would use.
    said = [draw.choice(jargon if own and draw.random() < 0.8 else general) for _ in range(2)]
    if draw.random() < 0.15:  # notes are written in a hurry: some speak of another cause as well
        said[1] = draw.choice(WORDS[draw.choice(list(WORDS))][1 if own else 0].split())
    return f"{draw.choice(PLACES)} {said[0]} {draw.choice(ABOUT)}, {said[1]} {draw.choice(ENDS)}"


def write(path: Path, rows: int, *, own: bool, seed: int) -> None:
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "cause"])
        for _ in range(rows):
            cause = draw.choice(list(WORDS))
            writer.writerow([note(draw, cause, own=own), cause])
    print(f"{path}: {rows} rows")


if __name__ == "__main__":
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    write(folder / "general.csv", GENERAL, own=False, seed=SEED)
    write(folder / "own.csv", OWN, own=True, seed=SEED + 1)
