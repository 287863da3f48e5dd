"""How long does a save stop training, slow it, and take until it is durable?

    python -m bench.checkpoint_stops [--quick]

Beside torch.distributed.checkpoint. A small transformer trains with AdamW in fp32 on one thread, as a control
plane starts it. Saves behind training: each tool in turn saves while passes and steps go on. Stopped: its
call, and what it makes the optimizer's step wait. Slowed: steps while it writes against those before. Saves
that somebody waits for: until the checkpoint would survive a power cut, and the disk alone with as many
bytes. Medians; all of one run on one machine, so their ratios count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse, async_save
from torch.distributed.checkpoint.state_dict_saver import save as save_now

from wattline.checkpoint import LocalStore, Series, Written
from wattline.checkpoint.stores.direct import DirectWriter
from wattline.checkpoint.stores.files import write_all
from wattline.train.parts import capture

_ROUNDS = 7
_WARM_UP = 2  # the first saves of each have to find their memory
_QUIET_STEPS = 2
_WIDTH, _LAYERS, _VOCABULARY = 384, 6, 8192
_BATCH, _CONTEXT = 2, 48


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A transformer, its optimizer and its data."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    data: torch.Generator

    @classmethod
    def make(cls, width: int, layers: int) -> Training:
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True)
        model = torch.nn.Sequential(
            torch.nn.Embedding(_VOCABULARY, width),
            torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            torch.nn.Linear(width, _VOCABULARY),
        )
        return cls(model, torch.optim.AdamW(model.parameters(), lr=3e-4), torch.Generator().manual_seed(1))

    @property
    def parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer}

    @property
    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    @property
    def state_bytes(self) -> int:
        return 3 * 4 * sum(parameter.numel() for parameter in self.model.parameters())

    def compute(self) -> None:
        """Forward and backward on a batch: the state holds still."""
        tokens = torch.randint(_VOCABULARY, (_BATCH, _CONTEXT + 1), generator=self.data)
        logits = self.model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Behind(Protocol):
    """A tool that saves while training goes on."""

    def begin(self, step: int) -> None: ...

    def wait_before_step(self) -> None: ...

    def is_done(self) -> bool: ...

    def end(self) -> float:
        """The moment when the save was durable."""


class Ours:
    def __init__(self, root: Path, training: Training) -> None:
        self._series = Series(LocalStore(root), epoch=1, keep=2, lineage={})
        self._training, self._began = training, 0.0
        self._written: Written | None = None

    def begin(self, step: int) -> None:
        tree = capture(self._training.parts, until_step=True)
        self._began = time.monotonic()
        self._series.begin(tree, step)

    def wait_before_step(self) -> None:
        self._series.release()  # what the hook on the optimizer's step does

    def is_done(self) -> bool:
        self._written = self._series.take()
        return self._written is not None

    def end(self) -> float:
        assert self._written is not None
        assert self._written.error is None
        return self._began + self._written.seconds  # what is pruned after that is pruned at leisure


class Theirs:
    """`async_save` as it is, or with what it has for saves that hardly stop: staging behind, a process."""

    def __init__(self, root: Path, training: Training, *, stages_behind: bool, own_process: bool) -> None:
        self._root, self._training = root, training
        options = StagingOptions(False, own_process, True, False)
        self._stager = DefaultStager(options) if stages_behind else None
        self._kind = AsyncCheckpointerType.PROCESS if own_process else AsyncCheckpointerType.THREAD
        self._staged: Future[None] | None = None
        self._uploaded: Future[Any] = Future()
        self._moment = 0.0

    def begin(self, step: int) -> None:
        shutil.rmtree(self._root / str(step - 1), ignore_errors=True)
        answer = async_save(
            self._training.state,
            checkpoint_id=self._root / str(step),
            async_stager=self._stager,
            async_checkpointer_type=self._kind,
        )
        if isinstance(answer, AsyncSaveResponse):
            self._staged, self._uploaded = answer.staging_completion, answer.upload_completion
        else:
            self._uploaded = answer
        self._uploaded.add_done_callback(lambda _: setattr(self, "_moment", time.monotonic()))

    def wait_before_step(self) -> None:
        if self._staged is not None:
            self._staged.result()

    def is_done(self) -> bool:
        return self._uploaded.done()

    def end(self) -> float:
        self._uploaded.result()
        return self._moment


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one save behind training, in seconds."""

    stopped: float
    slowed: float  # steps while it was written against steps before
    total: float

    @property
    def columns(self) -> str:
        return f"{self.stopped * 1e3:8.1f} ms{self.slowed:9.2f} x{self.total * 1e3:9.0f} ms"


def timed(function: Callable[[], Any]) -> float:
    began = time.monotonic()
    function()
    return time.monotonic() - began


def save_behind(tool: Behind, training: Training, step: int) -> Costs:
    def train() -> float:
        return timed(training.compute) + timed(training.step)

    quiet = statistics.median(train() for _ in range(_QUIET_STEPS))
    began = time.monotonic()
    stopped = timed(lambda: tool.begin(step))
    first = timed(training.compute)
    stopped += timed(tool.wait_before_step)
    steps = [first + timed(training.step)]
    while not tool.is_done():
        steps.append(train())
    return Costs(stopped, statistics.fmean(steps) / quiet, tool.end() - began)


def savers_that_wait(folder: Path, training: Training) -> dict[str, Callable[[int], float]]:
    """Seconds until durable, nobody training meanwhile."""
    series = Series(LocalStore(folder / "now"), epoch=1, keep=2, lineage={})

    def ours(step: int) -> float:
        began = time.monotonic()
        tree = capture(training.parts)
        captured = time.monotonic()
        series.save_now(tree, step)
        written = series.take()
        assert written is not None
        assert written.error is None
        return captured - began + written.seconds

    def theirs(step: int) -> float:
        shutil.rmtree(folder / "sync" / str(step - 1), ignore_errors=True)
        return timed(lambda: save_now(training.state, checkpoint_id=folder / "sync" / str(step)))

    noise = memoryview(os.urandom(training.state_bytes))

    def alone(write: Callable[[int], None]) -> float:
        descriptor = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            return timed(lambda: write(descriptor))
        finally:
            os.close(descriptor)
            (folder / "raw").unlink()

    def through_cache(descriptor: int) -> None:
        write_all(descriptor, noise)
        os.fsync(descriptor)

    def past_cache(descriptor: int) -> None:
        disk = DirectWriter(descriptor)
        disk.write(noise)
        disk.sync()
        disk.close()

    return {
        "wattline, waited for": ours,
        "DCP": theirs,
        "the disk alone, past cache": lambda _: alone(past_cache),
        "the disk alone": lambda _: alone(through_cache),
    }


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, Costs], dict[str, float]]:
    training = Training.make(*((96, 2) if quick else (_WIDTH, _LAYERS)))
    print(
        f"{training.state_bytes / 12:,.0f} parameters, {training.state_bytes / 1e6:,.0f} MB of state in fp32"
    )
    for _ in range(2):
        training.compute()
        training.step()
    tools: dict[str, Behind] = {"wattline": Ours(folder / "ours", training)}
    for name, stages_behind, own_process in (
        ("DCP async", False, False),
        ("DCP async, staged behind", True, False),
        ("the same, own process", True, True),
    ):
        root = folder / name.replace(" ", "-")
        tools[name] = Theirs(root, training, stages_behind=stages_behind, own_process=own_process)
    waiting = savers_that_wait(folder, training)
    costs: dict[str, list[Costs]] = {name: [] for name in tools}
    totals: dict[str, list[float]] = {name: [] for name in waiting}
    for step in range(_WARM_UP + (3 if quick else _ROUNDS)):
        for name, tool in tools.items():
            costs[name].append(save_behind(tool, training, step))
        for name, save in waiting.items():
            training.compute()
            training.step()
            totals[name].append(save(step))
    return (
        {name: median_of(each[_WARM_UP:]) for name, each in costs.items()},
        {name: statistics.median(each[_WARM_UP:]) for name, each in totals.items()},
    )


def median_of(costs: list[Costs]) -> Costs:
    return Costs(
        statistics.median(each.stopped for each in costs),
        statistics.median(each.slowed for each in costs),
        statistics.median(each.total for each in costs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.filterwarnings("ignore", module="torch")
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="stops-"))
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29571"}  # the other process asks for them
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        behind, waited = measure(folder, quick=quick)
    finally:
        dist.destroy_process_group()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'behind training':26}{'stopped':>11}{'slowed':>11}{'total':>12}")
    for name, costs in behind.items():
        print(f"{name:26}{costs.columns}")
    print(f"{'waited for':26}{'total':>34}")
    for name, seconds in waited.items():
        print(f"{name:26}{seconds * 1e3:31.0f} ms")
    ours = behind.pop("wattline")
    for name, costs in behind.items():
        print(f"stopped against {name}: {ours.stopped / costs.stopped:.2f} (bar 0.20)")
    print(f"total, waited for, against DCP: {waited['wattline, waited for'] / waited['DCP']:.2f} (bar 0.50)")


if __name__ == "__main__":
    main()
