"""Package: what is released? The candidate, as it was judged, and a card that says how it did.

Reads models/candidate.npz and what the phases before measured; writes out/model.npz and out/card.md.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

OUT = Path("out")


def main() -> None:
    shutil.copyfile("models/candidate.npz", OUT / "model.npz")
    sha256 = hashlib.sha256((OUT / "model.npz").read_bytes()).hexdigest()
    metrics = json.loads((OUT / "metrics.json").read_text())
    rows = [
        "# Model card\n",
        f"`model.npz`, sha256 `{sha256}`\n",
        "For: foretelling which training jobs come late, at the sites it was accepted for.\n",
        "| measure | value |\n|---|---|",
        *(f"| {name} | {value:.4g} |" for name, value in sorted(metrics.items())),
    ]
    (OUT / "card.md").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
