"""What comes of a thousand faults: is each one found, and is the newest good checkpoint restored?

    python -m bench.checkpoint_faults [--quick] [--seed N]

Flipped bits, cut files, missing packs, `kill -9` while saving, a full disk. Beside it, what `torch.load`,
`torch.distributed.checkpoint` and safetensors do with one flipped byte in the numbers.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from wattline.checkpoint import LocalStore, Series, StorageError, list_checkpoints, restore, save, verify

_FAULTS = {"flipped bit": 600, "cut file": 150, "missing file": 100, "kill -9": 100, "full disk": 50}
_QUICK = {"flipped bit": 30, "cut file": 8, "missing file": 5, "kill -9": 4, "full disk": 2}
_SAVER = """
import sys
from pathlib import Path
import numpy as np
from wattline.checkpoint import LocalStore, Series, restore
store = LocalStore(Path(sys.argv[1]))
series = Series(store, epoch=int(sys.argv[2]), keep=3, lineage={})
found = restore(store)
first = found.step + 1 if found else 1
weights = np.random.default_rng(first).standard_normal(400_000, dtype=np.float32)
for step in range(first, first + 10_000):
    weights += np.float32(1e-4)
    series.begin({"w": weights, "step": step}, step)
    series.end()
    print(step, flush=True)
"""


def make_store(root: Path, steps: int) -> dict[int, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """A series of checkpoints, some of them differences to others; what each holds."""
    series = Series(LocalStore(root), epoch=1, keep=None, lineage={})
    weights = np.random.default_rng(0).standard_normal(50_000, dtype=np.float32)
    held = {}
    for step in range(1, steps + 1):
        weights += np.float32(1e-4)
        series.begin({"w": weights, "frozen": np.arange(100)}, step)
        series.end()
        held[step] = weights.copy()
    return held


def damage(kind: str, root: Path, chance: random.Random) -> Path:
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    path = chance.choice(files)
    raw = bytearray(path.read_bytes())
    if kind == "missing file":
        path.unlink()
    elif kind == "cut file":
        path.write_bytes(raw[: chance.randrange(len(raw))])
    else:
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        path.write_bytes(raw)
    return path


def try_damage(kind: str, count: int, chance: random.Random, folder: Path) -> Counter[str]:
    """Damage one file of a store of six; all that does not need it must still verify."""
    outcomes: Counter[str] = Counter()
    held = make_store(folder / "good", 6)
    for number in range(count):
        root = folder / f"{kind}-{number}"
        shutil.copytree(folder / "good", root)
        store = LocalStore(root)
        damage(kind, root, chance)
        whole, broken = [], []
        for step in held:
            try:
                verify(store, f"step-{step:08d}.e1")
                whole.append(step)
            except Exception:  # noqa: BLE001  whatever it says, it was found
                broken.append(step)
        restored = restore(store)
        newest = max(whole, default=0)
        right = restored is not None and restored.step == newest
        right = right and np.array_equal(restored.tree["w"], held[newest]) if restored else False
        outcomes["found" if broken else "unnoticed"] += 1
        outcomes["newest good restored" if right else "not restored"] += 1
        shutil.rmtree(root)
    return outcomes


def try_kills(count: int, chance: random.Random, folder: Path) -> Counter[str]:
    """Kill a process that saves again and again, at a random moment, and look at what it left."""
    outcomes: Counter[str] = Counter()
    root = folder / "killed"
    for number in range(count):
        saver = subprocess.Popen(
            [sys.executable, "-c", _SAVER, str(root), str(number)], stdout=subprocess.PIPE, text=True
        )
        assert saver.stdout is not None
        saver.stdout.readline()
        time.sleep(chance.random() * 0.2)
        saver.send_signal(signal.SIGKILL)
        told = saver.stdout.read().split()
        saver.wait()
        store = LocalStore(root)
        restored = restore(store)
        last = int(told[-1]) if told else 0
        right = restored is not None and not restored.rejected and restored.step >= last
        for entry in list_checkpoints(store):
            verify(store, entry.name)
        outcomes["found" if right else "unnoticed"] += 1
        outcomes["newest good restored" if right else "not restored"] += 1
    return outcomes


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def try_full_disk(count: int, chance: random.Random, folder: Path) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    if os.geteuid() != 0:
        print("full disk: left out, mounting a small one needs root")
        return outcomes
    for _ in range(count):
        with small_disk(folder) as place:
            store = LocalStore(place)
            save(store, {"w": np.frombuffer(chance.randbytes(400_000), np.uint8)}, step=1, epoch=0)
            size = chance.randrange(1_200_000, 3_000_000)
            try:
                save(store, {"w": np.frombuffer(chance.randbytes(size), np.uint8)}, step=2, epoch=0)
                outcomes["unnoticed"] += 1
            except StorageError:
                outcomes["found"] += 1
            restored = restore(store)
            right = restored is not None and restored.step == 1 and not restored.rejected
            outcomes["newest good restored" if right else "not restored"] += 1
    return outcomes


def try_peers(folder: Path) -> None:
    """One flipped byte in the numbers of a file that each of them wrote."""
    try:
        import safetensors.torch
        import torch
        from torch.distributed.checkpoint.state_dict_loader import load as load_shards
        from torch.distributed.checkpoint.state_dict_saver import save as save_shards
    except ImportError as error:
        print(f"peers: left out, {error.name} is not installed")
        return
    state = {"w": torch.arange(250_000, dtype=torch.float32)}

    def torch_load() -> torch.Tensor:
        torch.save(state, folder / "state.pt")
        _flip(folder / "state.pt")
        loaded: torch.Tensor = torch.load(folder / "state.pt", weights_only=True)["w"]
        return loaded

    def dcp_load() -> torch.Tensor:
        save_shards(state, checkpoint_id=folder / "dcp", no_dist=True)
        _flip(next((folder / "dcp").glob("*.distcp")))
        target = {"w": torch.zeros(250_000)}
        load_shards(target, checkpoint_id=folder / "dcp", no_dist=True)
        return target["w"]

    def safetensors_load() -> torch.Tensor:
        safetensors.torch.save_file(state, folder / "state.safetensors")
        _flip(folder / "state.safetensors")
        return safetensors.torch.load_file(folder / "state.safetensors")["w"]

    peers: dict[str, Callable[[], torch.Tensor]] = {
        "torch.load": torch_load,
        "torch.distributed.checkpoint": dcp_load,
        "safetensors": safetensors_load,
    }
    for name, load in peers.items():
        try:
            wrong = int((load() != state["w"]).sum())
            print(f"{name}: one flipped byte is loaded without a word, {wrong} number is wrong")
        except Exception as error:  # noqa: BLE001
            print(f"{name}: one flipped byte is found: {type(error).__name__}")


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x40
    path.write_bytes(raw)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    faults = _QUICK if arguments.quick else _FAULTS
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        for kind, count in faults.items():
            place = folder / kind.replace(" ", "-")
            place.mkdir()
            if kind == "kill -9":
                outcomes = try_kills(count, chance, place)
            elif kind == "full disk":
                outcomes = try_full_disk(count, chance, place)
            else:
                outcomes = try_damage(kind, count, chance, place)
            total += outcomes
            print(f"{kind:14}{count:6}  {dict(sorted(outcomes.items()))}", flush=True)
        print(f"{'in all':14}{sum(faults.values()):6}  {dict(sorted(total.items()))}")
        try_peers(folder)
    if total["unnoticed"] or total["not restored"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
