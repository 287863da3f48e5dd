"""`make demo`: train a small model through a cooling fault, and show that nothing was lost.

While `wattline run` carries the pipeline through the fault, the same scripts train undisturbed beside it,
without any control plane. At the end both models are compared, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = "model.npz"


def main() -> int:
    wattline = str(Path(sys.executable).with_name("wattline"))
    with tempfile.TemporaryDirectory(prefix="wattline-demo-") as name:
        undisturbed = start_undisturbed(Path(name) / "undisturbed")
        arguments = ["--policy", str(HERE / "policy.yaml"), "--faults", str(HERE / "faults.yaml")]
        code = subprocess.call([wattline, "run", str(HERE / "wattline.yaml"), *arguments])
        if code != 0:
            undisturbed.kill()
            return code
        if undisturbed.wait() != 0:
            print("the undisturbed training failed", file=sys.stderr)
            return 1
        plain = sha256(Path(name) / "undisturbed" / "out" / MODEL)
    released = released_sha256(wattline)
    print(f"\n{MODEL}, sha256, trained undisturbed and without Wattline:\n  {plain}")
    print(f"{MODEL}, sha256, released after being capped, shrunk, paused and moved:\n  {released}")
    if plain != released:
        print("the two models differ", file=sys.stderr)
        return 1
    print("Bit-identical: the fault cost time, and nothing else.\n")
    shown = os.path.relpath(wattline)
    print("Try next:")
    print(f"  {shown} explain train    why it moved, with numbers")
    print(f"  {shown} lineage tiny-lm  the chain behind the release, verified")
    print(f"  {shown} facility show    the two sites and their headroom")
    return 0


def start_undisturbed(folder: Path) -> subprocess.Popen[bytes]:
    """The same scripts by hand: one thread for numeric libraries, as Wattline sets it."""
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("out", "checkpoints", "__pycache__"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    script = f'"{sys.executable}" prepare.py && exec "{sys.executable}" train.py'
    return subprocess.Popen(
        script, shell=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def released_sha256(wattline: str) -> str:
    """The model's hash as the release's lineage has it, read again from the shelf."""
    command = [wattline, "lineage", "tiny-lm", "--output", "json"]
    links = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["links"]
    (model,) = [link for link in links if link["kind"] == "artifact" and link["name"] == MODEL]
    return str(model["digest"]).removeprefix("sha256:")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
