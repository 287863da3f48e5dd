"""How small do checkpoints become, and how fast, beside ZipNN and borg?

    python -m bench.checkpoint_sizes

A small GPT is trained with AdamW on the sources of Python's standard library, and its state saved along the
way; ours and the peers then store the same states. torch and ZipNN go into a virtualenv of their own under
--lab; borg comes from the system. Speed is megabytes of state per CPU-second of all threads and children,
the best of some rounds in which ours and the peer take turns. In memory both get several calls a round: the
first ones wait for fresh pages.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.small_gpt import FULL, QUICK, Size, run_short_training, run_training

Tensors = dict[str, npt.NDArray[Any]]

_PEERS = ("torch==2.13.0", "zipnn==0.5.4", "numpy")
_ROUNDS = 3
_CALLS = 8
_HIDDEN_SIZES = (72, 120, 176, 240, 320)  # of the models with frozen layers: 0.3 to 5 million parameters
_LEAST_SECONDS = 0.01  # no less can be told apart from what starting a process costs


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing some states took."""

    stored_bytes: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Question:
    """A series of states, the peer, and what share of its bytes and speed must be reached."""

    text: str
    peer: str
    series: str
    most_bytes: float
    least_speed: float | None = None
    alone: bool = False  # the last state only, in memory


QUESTIONS = (
    Question("fp32 state alone", "zipnn", "far", 1.01, 1.5, alone=True),
    Question("bf16 weights alone", "zipnn", "far-bf16", 1.01, 1.5, alone=True),
    Question("fp32 series, {gap} steps apart", "borg", "far", 0.90, 2),
    Question("fp32 series, every step", "borg", "near", 0.79, 2),
    Question("bf16 stream, {gap} steps apart", "zipnn", "far-bf16", 0.92),
    Question("bf16 stream, low learning rate", "zipnn", "low-bf16", 0.25),
    Question("three of four layers frozen", "borg", "frozen", 0.5),
)


def store_ours(states: Sequence[Tensors], folder: Path) -> Stored:
    """As a save does: chunks are hashed, those known are left out, others encoded after the state before."""
    from blake3 import blake3

    from wattline.checkpoint.chunks import CHUNK_BYTES
    from wattline.checkpoint.codecs import encode

    def chunks(tensors: Tensors, name: str) -> Iterator[memoryview]:
        raw = tensors[name].reshape(-1).view(np.uint8).data
        return (raw[at : at + CHUNK_BYTES] for at in range(0, len(raw), CHUNK_BYTES))

    began = time.process_time()
    known: set[bytes] = set()
    before: Tensors = {}
    for number, tensors in enumerate(states):
        with (folder / str(number)).open("wb") as pack:
            for name, tensor in tensors.items():
                bases = list(chunks(before, name)) if name in before else None
                for at, raw in enumerate(chunks(tensors, name)):
                    digest = blake3(raw).digest()
                    if digest not in known:
                        known.add(digest)
                        pack.write(encode(raw, tensor.itemsize, bases[at] if bases else None)[1])
        before = tensors
    return Stored(size_of(folder), time.process_time() - began)


def encode_ours(states: Sequence[Tensors], _: Path) -> Stored:
    """Each state alone, in memory."""
    from wattline.checkpoint.codecs import encode

    raws = [
        (tensor.reshape(-1).view(np.uint8).data, tensor.itemsize) for one in states for tensor in one.values()
    ]

    def once() -> Stored:
        began = time.process_time()
        stored_bytes = sum(len(encode(raw, width, None)[1]) for raw, width in raws)
        return Stored(stored_bytes, time.process_time() - began)

    return fastest(once() for _ in range(_CALLS))


def fastest(tries: Iterable[Stored]) -> Stored:
    return min(tries, key=lambda one: one.cpu_seconds)


@dataclass(frozen=True, slots=True)
class Lab:
    """Where peers and states are kept from one run to the next."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def prepare(self) -> dict[str, str]:
        """Install what is missing; why a peer cannot be used, for those that cannot."""
        missing = {}
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.folder / "venv")], check=True)
        for peer in _PEERS:
            pip = [str(self.python), "-m", "pip", "install", "--quiet", peer]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                missing[peer.split("=")[0]] = f"pip cannot install {peer}: {done.stderr.strip()[-200:]}"
        if shutil.which("borg") is None and os.geteuid() == 0 and shutil.which("apt-get"):
            subprocess.run(["apt-get", "install", "-y", "borgbackup"], capture_output=True, check=False)
        if shutil.which("borg") is None:
            missing["borg"] = "there is no borg on the path: install the package borgbackup"
        return missing

    def states(self, name: str) -> Path:
        """Train, unless that was done before."""
        folder = self.folder / f"states-{name}"
        if not folder.exists():
            print(f"training the model {name}", file=sys.stderr)
            unfinished = self.folder / f"partial-{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            self.run("train", name, unfinished)
            unfinished.rename(folder)
        return folder

    def run(self, part: str, *arguments: str | Path) -> str:
        """A part of this file that needs a peer, in the peers' interpreter."""
        command: list[str | Path] = [self.python, "-m", "bench.checkpoint_sizes", "--part", part, *arguments]
        above = Path(__file__).parents[1]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=above).stdout


def run_zipnn(series: Path, which: str) -> None:
    """Each state as one piece in memory, which suits it better than many small tensors."""
    zipnn = import_module("zipnn")

    def once(tensors: Tensors) -> Stored:
        (width,) = {tensor.itemsize for tensor in tensors.values()}
        raw = bytearray(b"".join(tensor.tobytes() for tensor in tensors.values()))
        peer = zipnn.ZipNN(input_format="byte", bytearray_dtype="float32" if width == 4 else "bfloat16")
        began = time.process_time()
        stored_bytes = len(peer.compress(raw))
        return Stored(stored_bytes, time.process_time() - began)

    states = read_states(series)
    if which == "last":
        stored = fastest(once(states[-1]) for _ in range(_CALLS))
    else:
        each = [once(tensors) for tensors in states]
        stored = Stored(sum(one.stored_bytes for one in each), sum(one.cpu_seconds for one in each))
    print(json.dumps({"stored_bytes": stored.stored_bytes, "cpu_seconds": stored.cpu_seconds}))


def store_borg(series: Path, folder: Path) -> Stored:
    """One archive for each state; what starting borg costs is measured on nothing, and taken off."""
    repository, empty = folder / "repository", folder / "empty"
    empty.mkdir()
    environment = os.environ | {
        "BORG_BASE_DIR": str(folder / "base"),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }

    def borg(*arguments: str | Path) -> float:
        began = children_seconds()
        subprocess.run(["borg", *arguments], env=environment, check=True, capture_output=True)
        return children_seconds() - began

    borg("init", "--encryption", "none", repository)
    starting, storing = [], []
    for number, state in enumerate(sorted(series.iterdir())):
        starting.append(borg("create", f"{repository}::empty-{number}", empty))
        storing.append(borg("create", "--compression", "zstd,3", f"{repository}::state-{number}", state))
    cpu_seconds = sum(storing) - len(storing) * min(starting)
    return Stored(size_of(repository / "data"), max(cpu_seconds, _LEAST_SECONDS))


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def read_states(series: Path) -> list[Tensors]:
    states = []
    for path in sorted(series.iterdir()):
        with np.load(path) as arrays:
            states.append({name: arrays[name] for name in arrays.files})
    return states


def measure(question: Question, lab: Lab, states: Path) -> tuple[Stored, Stored, int]:
    """Ours, the peer's, and how many bytes there were; ours and the peer take turns."""
    series = states / question.series
    tensors = read_states(series)[-1 if question.alone else 0 :]

    def of_peer(folder: Path) -> Stored:
        if question.peer == "borg":
            return store_borg(series, folder)
        return Stored(**json.loads(lab.run("zipnn", series, "last" if question.alone else "all")))

    def of_ours(folder: Path) -> Stored:
        return (encode_ours if question.alone else store_ours)(tensors, folder)

    ours, peers = [], []
    for _ in range(_ROUNDS if question.least_speed else 1):
        ours.append(in_a_folder(of_ours))
        peers.append(in_a_folder(of_peer))
    raw_bytes = sum(tensor.nbytes for one in tensors for tensor in one.values())
    return fastest(ours), fastest(peers), raw_bytes


def in_a_folder(store: Callable[[Path], Stored]) -> Stored:
    with tempfile.TemporaryDirectory() as folder:
        return store(Path(folder))


def print_row(question: Question, size: Size, ours: Stored, peer: Stored, raw_bytes: int) -> None:
    smaller = ours.stored_bytes / peer.stored_bytes
    faster = peer.cpu_seconds / ours.cpu_seconds
    bar = f"≤ {question.most_bytes:.2f}×"
    met = smaller <= question.most_bytes
    if question.least_speed is not None:
        bar += f", ≥ {question.least_speed:.1f}×"
        met = met and faster >= question.least_speed
    speeds = [raw_bytes / 1e6 / one.cpu_seconds for one in (ours, peer)]
    shares = [one.stored_bytes / raw_bytes for one in (ours, peer)]
    print(
        f"{question.text.format(gap=size.gap_steps):34} {question.peer:6}"
        f" {shares[0]:6.3f} /{shares[1]:6.3f} ={smaller:6.3f}×"
        f" {speeds[0]:6.0f} /{speeds[1]:6.0f} ={faster:6.2f}×"
        f"  {bar:16} {'yes' if met else 'NO'}",
        flush=True,
    )


def print_frozen(lab: Lab) -> None:
    """How the figure for frozen layers depends on the model: borg's chunks are of about 2 MB.

    The least is what ours would be if nothing were stored after the first state.
    """
    print("\nthree of four layers frozen, four states: share of raw")
    print(f"{'parameters':>10} {'ours':>6} {'borg':>6} {'least':>6} {'ours/borg':>10} {'least/borg':>10}")
    for hidden in _HIDDEN_SIZES:
        series = lab.states("frozen") / str(hidden) / "frozen"
        states = read_states(series)
        raw_bytes = sum(tensor.nbytes for one in states for tensor in one.values())
        ours = in_a_folder(partial(store_ours, states)).stored_bytes
        least = in_a_folder(partial(store_ours, states[:1])).stored_bytes
        borg = in_a_folder(partial(store_borg, series)).stored_bytes
        print(
            f"{raw_bytes // len(states) // 12:10} {ours / raw_bytes:6.3f} {borg / raw_bytes:6.3f}"
            f" {least / raw_bytes:6.3f} {ours / borg:10.3f} {least / borg:10.3f}",
            flush=True,
        )


def train(name: str, folder: Path) -> None:
    if name == "frozen":
        for hidden in _HIDDEN_SIZES:
            run_short_training(hidden, folder / str(hidden))
    else:
        run_training(QUICK if name == QUICK.name else FULL, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="The sizes of checkpoints beside ZipNN's and borg's.")
    parser.add_argument("--lab", type=Path, default=Path.home() / ".cache" / "wattline-bench")
    parser.add_argument("--quick", action="store_true", help="a tiny model and few steps")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.part:
        case ["train", name, folder]:
            return train(name, Path(folder))
        case ["zipnn", series, which]:
            return run_zipnn(Path(series), which)
    from wattline.checkpoint.codecs.kernel import kernel_in_use  # not in the peers' interpreter

    lab, size = Lab(asked.lab.absolute()), QUICK if asked.quick else FULL
    missing = lab.prepare()
    for peer, why in missing.items():
        print(f"{peer} cannot be compared with: {why}")
    if "torch" in missing and not (lab.folder / f"states-{size.name}").exists():
        sys.exit("without torch there is nothing to train with")
    states = lab.states(size.name)
    print(f"numbers of two bytes are split and paired by: {kernel_in_use()}")
    print(f"{'':34} {'peer':6} {'stored share, ours / peer':24} {'MB per CPU-s':24} {'bar':16} met")
    for question in QUESTIONS:
        if question.peer not in missing:
            print_row(question, size, *measure(question, lab, states))
    if not {"borg", "torch"} & missing.keys():
        print_frozen(lab)
    return None


if __name__ == "__main__":
    main()
