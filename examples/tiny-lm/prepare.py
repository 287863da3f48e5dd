"""Prepare: turn the corpus into tokens, and set some of it aside for the evaluation.

Reads data/corpus.txt; writes out/vocabulary.npy, out/training.npy and, for each voice of the corpus,
out/held-out-log.npy and out/held-out-handbook.npy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from model import tokens_of

from wattline import train


def main() -> None:
    settings = train.params()
    text = Path("data/corpus.txt").read_bytes()
    paragraphs = text.strip().split(b"\n\n")
    held_out = max(2, round(len(paragraphs) * settings["held_out"]))
    training = b"\n\n".join(paragraphs[:-held_out]) + b"\n\n"
    voices: dict[str, list[bytes]] = {"log": [], "handbook": []}
    for paragraph in paragraphs[-held_out:]:
        voices["log" if paragraph[:1].isdigit() else "handbook"].append(paragraph)

    out = Path("out")
    out.mkdir(exist_ok=True)
    vocabulary = np.unique(np.frombuffer(training, dtype=np.uint8))
    np.save(out / "vocabulary.npy", vocabulary, allow_pickle=False)
    np.save(out / "training.npy", tokens_of(training, vocabulary), allow_pickle=False)
    for voice, spoken in voices.items():
        tokens = tokens_of(b"\n\n".join(spoken) + b"\n\n", vocabulary)
        np.save(out / f"held-out-{voice}.npy", tokens, allow_pickle=False)
        print(f"held out {len(tokens)} bytes of the {voice}")
    print(f"{len(training)} bytes to learn from, {len(vocabulary)} different")


if __name__ == "__main__":
    main()
