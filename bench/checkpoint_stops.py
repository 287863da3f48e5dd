"""How long does a save stop training, and how long until it is durable? Beside torch.distributed.checkpoint.

    python -m bench.checkpoint_stops [--quick]

The state of a small GPT and its AdamW in fp32 is changed a little, then saved, several times over, by each in
turn. Stopped: from the call until training may change the state again. Total: until the checkpoint would
survive a power cut. Medians; both of one run on one machine, so their ratio counts.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict_saver import async_save
from torch.distributed.checkpoint.state_dict_saver import save as save_now

from wattline.checkpoint import LocalStore, Series
from wattline.train.parts import capture

_ROUNDS = 7
_WARM_UP = 2  # the first saves of each have to find their memory
_WIDTH, _LAYERS, _VOCABULARY = 384, 6, 8192
_Timed = tuple[float, float]  # stopped, total


def make_training(width: int, layers: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A transformer with the optimizer state of some steps."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True)
    model = torch.nn.ModuleDict(
        {
            "embedding": torch.nn.Embedding(_VOCABULARY, width),
            "layers": torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            "head": torch.nn.Linear(width, _VOCABULARY),
        }
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(2):
        change(model, optimizer)
    return model, optimizer


def change(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One step on made-up gradients: every number of the state moves."""
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter) * 1e-3
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def time_ours(
    root: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Callable[[int], _Timed]:
    series = Series(LocalStore(root), epoch=1, keep=2, lineage={})

    def save(step: int) -> _Timed:
        began = time.monotonic()
        series.begin(capture({"model": model, "optimizer": optimizer}), step)
        stopped = time.monotonic() - began
        series.end()
        written = series.take()
        assert written is not None
        assert written.error is None
        return stopped, written.seconds  # what is pruned after that is pruned at leisure

    return save


def time_dcp(
    root: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, is_async: bool
) -> Callable[[int], _Timed]:
    def save(step: int) -> _Timed:
        began = time.monotonic()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if not is_async:
            save_now(state, checkpoint_id=root / str(step))
            seconds = time.monotonic() - began
            return seconds, seconds
        future = async_save(state, checkpoint_id=root / str(step))
        stopped = time.monotonic() - began
        assert isinstance(future, Future)
        future.result()
        return stopped, time.monotonic() - began

    return save


def measure(quick: bool) -> dict[str, _Timed]:
    width, layers = (96, 2) if quick else (_WIDTH, _LAYERS)
    model, optimizer = make_training(width, layers)
    folder = Path(tempfile.mkdtemp(prefix="stops-"))
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
    try:
        savers = {
            "wattline": time_ours(folder / "ours", model, optimizer),
            "DCP async": time_dcp(folder / "async", model, optimizer, is_async=True),
            "DCP": time_dcp(folder / "sync", model, optimizer, is_async=False),
        }
        times: dict[str, list[_Timed]] = {name: [] for name in savers}
        for step in range(_WARM_UP + (3 if quick else _ROUNDS)):
            for name, save in savers.items():
                change(model, optimizer)
                timed = save(step)
                if step >= _WARM_UP:
                    times[name].append(timed)
                for old in (folder / "async", folder / "sync"):
                    shutil.rmtree(old / str(step - 1), ignore_errors=True)
    finally:
        dist.destroy_process_group()
        shutil.rmtree(folder, ignore_errors=True)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    print(f"{numbers:,} parameters, {3 * 4 * numbers / 1e6:,.0f} MB of state in fp32")
    return {
        name: (statistics.median(stop for stop, _ in each), statistics.median(whole for _, whole in each))
        for name, each in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    found = measure(parser.parse_args().quick)
    stopped, total = found["wattline"]
    print(f"{'':12}{'stopped':>12}{'total':>12}{'ours/its':>24}")
    for name, (its_stopped, its_total) in found.items():
        ratio = f"{stopped / its_stopped:.2f} / {total / its_total:.2f}"
        print(f"{name:12}{its_stopped * 1000:9.1f} ms{its_total * 1000:9.1f} ms{ratio:>24}")
    asynchronous, synchronous = found["DCP async"], found["DCP"]
    print(f"stopped against DCP async: {stopped / asynchronous[0]:.2f} (bar 0.20)")
    print(f"stopped against DCP: {stopped / synchronous[0]:.2f} (bar 0.20)")
    print(f"total against DCP async: {total / asynchronous[1]:.2f} (bar 0.50)")
    print(f"total against DCP: {total / synchronous[1]:.2f} (bar 0.50)")


if __name__ == "__main__":
    main()
