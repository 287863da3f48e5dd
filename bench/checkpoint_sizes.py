"""How small do checkpoints become, and how fast, beside ZipNN and borg?

    python -m bench.checkpoint_sizes

A small GPT is trained with AdamW on the sources of Python's standard library, and its state saved along the
way; ours and the peers then store the same states. torch and ZipNN go into a virtualenv of their own under
--lab; borg comes from the system. Speed is megabytes of state per CPU-second of all threads and children,
the best of some rounds in which ours and the peer take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Tensors = dict[str, npt.NDArray[Any]]

_PEERS = ("torch==2.13.0", "zipnn==0.5.4", "numpy")
_ROUNDS = 3
_FROZEN_LAYERS = 3
_LEAST_SECONDS = 0.01  # no less can be told apart from what starting a process costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Of the model, and for how long it trains."""

    name: str
    hidden: int
    warm_up_steps: int
    gap_steps: int
    states: int
    layers: int = 4
    heads: int = 8
    context: int = 128
    batch: int = 4


FULL = Size(name="full", hidden=320, warm_up_steps=150, gap_steps=100, states=6)
QUICK = Size(name="quick", hidden=64, warm_up_steps=20, gap_steps=10, states=3)


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
    began = time.process_time()
    stored_bytes = sum(len(encode(raw, width, None)[1]) for raw, width in raws)
    return Stored(stored_bytes, time.process_time() - began)


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

    def states(self, size: Size) -> Path:
        """Train, unless that was done before."""
        folder = self.folder / f"states-{size.name}"
        if not folder.exists():
            print(f"training the {size.name} model", file=sys.stderr)
            partial = self.folder / f"partial-{size.name}"
            shutil.rmtree(partial, ignore_errors=True)
            self.run("train", size.name, partial)
            partial.rename(folder)
        return folder

    def run(self, part: str, *arguments: str | Path) -> str:
        """A part of this file that needs a peer, in the peers' interpreter."""
        command: list[str | Path] = [self.python, Path(__file__), "--part", part, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run_zipnn(series: Path, which: str) -> None:
    """Each state as one piece in memory, which suits it better than many small tensors."""
    zipnn = import_module("zipnn")
    stored_bytes, cpu_seconds = 0, 0.0
    for tensors in read_states(series)[-1 if which == "last" else 0 :]:
        (width,) = {tensor.itemsize for tensor in tensors.values()}
        raw = bytearray(b"".join(tensor.tobytes() for tensor in tensors.values()))
        peer = zipnn.ZipNN(input_format="byte", bytearray_dtype="float32" if width == 4 else "bfloat16")
        began = time.process_time()
        stored_bytes += len(peer.compress(raw))
        cpu_seconds += time.process_time() - began
    print(json.dumps({"stored_bytes": stored_bytes, "cpu_seconds": cpu_seconds}))


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


class Trainer:
    """A GPT over bytes, and its AdamW."""

    def __init__(self, size: Size, folder: Path) -> None:
        self._torch: Any = import_module("torch")
        self._size, self._folder = size, folder
        self._torch.manual_seed(0)
        self._torch.set_num_threads(1)
        sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        text = np.frombuffer(b"".join(path.read_bytes() for path in sources), np.uint8)
        self._text = self._torch.from_numpy(text.astype(np.int64))
        self.weights = self._make_weights()
        self.optimizer = self._torch.optim.AdamW(list(self.weights.values()), lr=3e-4)

    def _make_weights(self) -> dict[str, Any]:
        hidden = self._size.hidden
        shapes: dict[str, tuple[int, ...]] = {"token": (256, hidden), "place": (self._size.context, hidden)}
        for layer in range(self._size.layers):
            for name, into, out in (("qkv", 1, 3), ("mix", 1, 1), ("up", 1, 4), ("down", 4, 1)):
                shapes[f"{layer}.{name}"] = (out * hidden, into * hidden)
                shapes[f"{layer}.{name}.bias"] = (out * hidden,)
            for name in ("norm1", "norm2"):
                shapes[f"{layer}.{name}"] = shapes[f"{layer}.{name}.bias"] = (hidden,)
        shapes |= {"norm": (hidden,), "norm.bias": (hidden,), "head": (256, hidden)}
        weights = {}
        for name, shape in shapes.items():
            value = self._torch.randn(shape) * 0.02 if len(shape) == 2 else self._torch.zeros(shape)
            if "norm" in name and "bias" not in name:
                value += 1
            weights[name] = value.requires_grad_()
        return weights

    def _predict(self, tokens: Any) -> Any:
        functional, weights, hidden = self._torch.nn.functional, self.weights, self._size.hidden

        def linear(x: Any, name: str) -> Any:
            return functional.linear(x, weights[name], weights[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:
            return functional.layer_norm(x, (hidden,), weights[name], weights[f"{name}.bias"])

        x = weights["token"][tokens] + weights["place"]
        batch, length, _ = x.shape
        for layer in range(self._size.layers):
            qkv = linear(norm(x, f"{layer}.norm1"), f"{layer}.qkv").chunk(3, -1)
            heads = [part.view(batch, length, self._size.heads, -1).transpose(1, 2) for part in qkv]
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + linear(seen.transpose(1, 2).reshape(batch, length, hidden), f"{layer}.mix")
            grown = functional.gelu(linear(norm(x, f"{layer}.norm2"), f"{layer}.up"))
            x = x + linear(grown, f"{layer}.down")
        return functional.linear(norm(x, "norm"), weights["head"])

    def train(self, steps: int, learning_rate: float = 3e-4, warm_up: bool = False) -> None:
        context, torch = self._size.context, self._torch
        for step in range(steps):
            self.optimizer.param_groups[0]["lr"] = learning_rate * ((step + 1) / steps if warm_up else 1)
            starts = torch.randint(len(self._text) - context - 1, (self._size.batch,)).tolist()
            tokens = torch.stack([self._text[at : at + context + 1] for at in starts])
            scores = self._predict(tokens[:, :-1]).flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(scores, tokens[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def dump(self, series: str, number: int) -> None:
        """One file for a state, as training scripts write them: the model, then the optimizer's moments."""
        model = {name: weight.detach() for name, weight in self.weights.items()}
        if series.endswith("bf16"):
            halves = {name: weight.bfloat16().view(self._torch.int16) for name, weight in model.items()}
            tensors = {name: half.numpy().view(np.uint16) for name, half in halves.items()}
        else:
            tensors = {name: weight.numpy() for name, weight in model.items()}
            for name, weight in self.weights.items():
                for moment in ("exp_avg", "exp_avg_sq"):
                    tensors[f"{name}.{moment}"] = self.optimizer.state[weight][moment].numpy()
        path = self._folder / series / f"{number:03}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **tensors)


def run_training(size: Size, folder: Path) -> None:
    trainer = Trainer(size, folder)
    trainer.train(size.warm_up_steps, warm_up=True)
    for number in range(size.states):
        trainer.train(size.gap_steps)
        trainer.dump("far", number)
        trainer.dump("far-bf16", number)
    for number in range(size.states):
        trainer.train(1)
        trainer.dump("near", number)
    for number in range(size.states):
        trainer.train(5, learning_rate=1e-6)
        trainer.dump("low-bf16", number)
    for name, weight in trainer.weights.items():
        if name.split(".")[0] in map(str, range(_FROZEN_LAYERS)):
            weight.requires_grad_(False)
            weight.grad = None  # AdamW would go on with the last one
    for number in range(4):
        trainer.train(size.gap_steps // 10)
        trainer.dump("frozen", number)


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
    return min(ours, key=lambda one: one.cpu_seconds), min(peers, key=lambda one: one.cpu_seconds), raw_bytes


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


def main() -> None:
    parser = argparse.ArgumentParser(description="The sizes of checkpoints beside ZipNN's and borg's.")
    parser.add_argument("--lab", type=Path, default=Path.home() / ".cache" / "wattline-bench")
    parser.add_argument("--quick", action="store_true", help="a tiny model and few steps")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.part:
        case ["train", name, folder]:
            return run_training(QUICK if name == QUICK.name else FULL, Path(folder))
        case ["zipnn", series, which]:
            return run_zipnn(Path(series), which)
    lab, size = Lab(asked.lab), QUICK if asked.quick else FULL
    missing = lab.prepare()
    for peer, why in missing.items():
        print(f"{peer} cannot be compared with: {why}")
    if "torch" in missing and not (lab.folder / f"states-{size.name}").exists():
        sys.exit("without torch there is nothing to train with")
    states = lab.states(size)
    print(f"{'':34} {'peer':6} {'stored share, ours / peer':24} {'MB per CPU-s':24} {'bar':16} met")
    for question in QUESTIONS:
        if question.peer not in missing:
            print_row(question, size, *measure(question, lab, states))
    return None


if __name__ == "__main__":
    main()
