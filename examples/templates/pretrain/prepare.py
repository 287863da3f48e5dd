"""Prepare: turn the corpus into tokens, and set the end of it aside for the evaluation.

Reads data/corpus.txt; writes out/vocabulary.npy, out/training.npy and out/held-out.npy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from model import tokens_of

from wattline import train


def main() -> None:
    settings = train.params()
    text = Path("data/corpus.txt").read_bytes()
    cut = text.rfind(b"\n", 0, round(len(text) * (1 - settings["held_out"]))) + 1
    vocabulary = np.unique(np.frombuffer(text[:cut], dtype=np.uint8))
    Path("out").mkdir(exist_ok=True)
    np.save("out/vocabulary.npy", vocabulary, allow_pickle=False)
    np.save("out/training.npy", tokens_of(text[:cut], vocabulary), allow_pickle=False)
    np.save("out/held-out.npy", tokens_of(text[cut:], vocabulary), allow_pickle=False)
    print(f"{cut} bytes to learn from, {len(text) - cut} held out, {len(vocabulary)} different ones")


if __name__ == "__main__":
    main()
