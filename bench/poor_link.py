"""Checkpoints over a poor link that is cut: how much is sent again, how full is the link, does the cap hold?

    python -m bench.poor_link [--quick] [--seed N] [--only wattline] [--bare]

A checkpoint of random numbers goes over 10 Mbit/s with 100 ms there and back and 5 % of packets lost each
way, under a cap of 9 Mbit/s: undisturbed; with the link cut for some seconds at a random point; with the
sender killed at a random point and started again; with both, so that nothing on its way arrives. rsync and
rclone do the same, with the congestion control that serves them best (BBR); with `--bare` they have what most
systems come with (cubic, or reno).

How full the link was is told twice: from the first byte to the last; and from the start of the sender's
process to its end, which is what a user waits for, every start with all its imports included. The time the
link was cut is left out. Needs root.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.link import CannotError, Link, Quality, poor_link
from wattline.checkpoint import LocalStore, StorageError, copy_checkpoint, coverage, save

CAP_BYTES_PER_SECOND = 9e6 / 8
TOKEN = "only-for-this-benchmark"
PORT = 8730
CUT_SECONDS = 4.0
_DISTURBANCES = ("cut", "killed", "cut, killed")
_LONGEST_SECONDS = 240.0
_KIB_PER_SECOND = f"{CAP_BYTES_PER_SECOND / 1024:.0f}"


@dataclass(frozen=True, slots=True)
class Tool:
    """A way to copy a folder to the far end; its sender is started again until it ends well."""

    name: str
    serve: Callable[[Path], Sequence[str]]
    send: Callable[[Path], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One copy and what the link saw of it."""

    tool: str
    what: str
    is_complete: bool
    sent_bytes: int
    seconds: float  # from the sender's start to its end, starts in between included, without the cut
    waited: float  # of the cap, over those seconds
    used: (
        float  # of the cap, from the first byte to the last, without the time the link or the sender was gone
    )
    worst_sent: float  # the fullest second at the near end, as a share of the cap
    worst_arrived: float


def tools(work: Path) -> Sequence[Tool]:
    python = (sys.executable, "-m", "bench.poor_link")
    config = work / "rsyncd.conf"
    config.write_text(f"use chroot = no\n[far]\npath = {work / 'far'}\nread only = no\nuid = 0\ngid = 0\n")
    rsync = ("rsync", "-r", "--inplace", f"--bwlimit={_KIB_PER_SECOND}", "--timeout=30")
    rclone = ("rclone", "copy", "--bwlimit", f"{_KIB_PER_SECOND}K", "--timeout=30s", "--config=/dev/null")
    serving = ("rclone", "serve", "webdav", f"--addr={Link.far_address}:{PORT}", "--config=/dev/null")
    webdav = f":webdav,url='http://{Link.far_address}:{PORT}':"
    return (
        Tool(
            "wattline",
            lambda far: (*python, "--receive", str(far)),
            lambda near: (*python, "--send", str(near)),
        ),
        Tool(
            "rsync",
            lambda _: ("rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={PORT}"),
            lambda near: (*rsync, f"{near}/", f"rsync://{Link.far_address}:{PORT}/far/"),
        ),
        Tool(
            "rclone",
            lambda far: (*serving, str(far)),
            lambda near: (*rclone, str(near), webdav),
        ),
    )


class Course:
    """One run: starts the ends, disturbs them, and watches the link."""

    def __init__(self, link: Link, tool: Tool, near: Path, far: Path) -> None:
        self._link, self._tool, self._near, self._far = link, tool, near, far
        self._sent: list[tuple[float, int]] = []
        self._arrived: list[tuple[float, int]] = []
        self._seconds = self._gone_seconds = 0.0

    def run(self, what: str, disturb_after_bytes: int | None) -> Run:
        with self._serving():
            self._link.count()  # what the run before left on its way
            began = time.monotonic()
            self._start()
            try:
                while not self._is_over() and time.monotonic() - began < _LONGEST_SECONDS:
                    self._watch()
                    if disturb_after_bytes is not None and self._sent_bytes >= disturb_after_bytes:
                        self._disturb(what)
                        disturb_after_bytes = None
                self._seconds += time.monotonic() - began
            finally:
                self._stop()
            self._watch()
        return self._summary(what)

    @property
    def _sent_bytes(self) -> int:
        return sum(size for _, size in self._sent)

    def _is_over(self) -> bool:
        """A sender that ends badly is started again."""
        if self._sender.poll():
            self._start()
        return self._sender.poll() == 0

    def _disturb(self, what: str) -> None:
        began = time.monotonic()
        if "cut" in what:
            self._link.cut()
        if "killed" in what:
            self._stop()
        if "cut" in what:
            time.sleep(CUT_SECONDS)
            self._link.mend()
            self._seconds -= time.monotonic() - began
        back_at = time.monotonic()
        if "killed" in what:
            self._start()
            while (spoke_at := self._first_connection_after(back_at)) is None and not self._sender.poll():
                self._watch()
            back_at = spoke_at or back_at
        self._gone_seconds = back_at - began

    def _first_connection_after(self, moment: float) -> float | None:
        return next((at for at, size in self._sent if at > moment and size == 0), None)

    def _start(self) -> None:
        command = self._tool.send(self._near)
        self._sender = self._link.run_in(self._link.near, command, stderr=subprocess.DEVNULL)

    def _stop(self) -> None:
        self._sender.kill()
        self._sender.wait()

    def _watch(self) -> None:
        time.sleep(0.05)
        counted = self._link.count()
        self._sent.extend(counted.sent)
        self._arrived.extend(counted.arrived)

    @contextmanager
    def _serving(self) -> Iterator[None]:
        shutil.rmtree(self._far, ignore_errors=True)
        self._far.mkdir()
        command = self._tool.serve(self._far)
        server = self._link.run_in(self._link.far, command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2.0)
            yield
        finally:
            server.kill()
            server.wait()

    def _summary(self, what: str) -> Run:
        source, target = LocalStore(self._near), LocalStore(self._far)
        payload_bytes = sum(stored.size_bytes for stored in source.list())
        used_seconds = self._arrived[-1][0] - self._arrived[0][0] - self._gone_seconds
        is_complete = coverage(source, target).is_full
        carried_bytes = payload_bytes if is_complete else sum(size for _, size in self._arrived)
        return Run(
            tool=self._tool.name,
            what=what,
            is_complete=is_complete,
            sent_bytes=self._sent_bytes,
            seconds=self._seconds,
            waited=carried_bytes / self._seconds / CAP_BYTES_PER_SECOND,
            used=carried_bytes / used_seconds / CAP_BYTES_PER_SECOND,
            worst_sent=fullest_second(self._sent) / CAP_BYTES_PER_SECOND,
            worst_arrived=fullest_second(self._arrived) / CAP_BYTES_PER_SECOND,
        )


def fullest_second(log: Sequence[tuple[float, int]]) -> int:
    """Of any second, wherever it begins."""
    most = inside = first = 0
    for at, size in log:
        inside += size
        while log[first][0] <= at - 1.0:
            inside -= log[first][1]
            first += 1
        most = max(most, inside)
    return most


def report(runs: Sequence[Run], payload_bytes: int) -> Iterator[str]:
    undisturbed = {run.tool: run.sent_bytes for run in runs if run.what == "undisturbed"}
    yield (
        f"{'':9} {'':12} {'sent again':>10} {'cap used':>9} {'from start':>10} {'fullest second':>15} "
        f"{'at the far end':>15}"
    )
    for run in runs:
        again = (run.sent_bytes - undisturbed[run.tool]) / payload_bytes
        told = f"{again:10.2%}" if run.what != "undisturbed" and run.is_complete else f"{'':10}"
        yield (
            f"{run.tool:9} {run.what:12} {told} {run.used:9.1%} {run.waited:10.1%} {run.worst_sent:15.1%} "
            f"{run.worst_arrived:15.1%}  {run.seconds:.0f} s{'' if run.is_complete else ', not complete'}"
        )


def make_checkpoint(folder: Path, size_bytes: int, seed: int) -> int:
    numbers = np.random.default_rng(seed)
    tree = {f"layer{index}": numbers.bytes(size_bytes // 8) for index in range(8)}
    arrays = {name: np.frombuffer(data, dtype=np.uint8) for name, data in tree.items()}
    return save(LocalStore(folder), arrays, step=1, epoch=0).size_bytes


def send(folder: Path) -> None:
    from wattline.checkpoint.pacing import Rate
    from wattline.checkpoint.stores.http import HttpStore

    target = HttpStore(f"http://{Link.far_address}:{PORT}", TOKEN, rate=Rate(CAP_BYTES_PER_SECOND))
    copied = None
    while copied is None:
        try:
            copied = copy_checkpoint(LocalStore(folder), target, streams=target.streams)
        except StorageError as error:
            print(error, file=sys.stderr)


def receive(folder: Path) -> None:
    from wattline.checkpoint.receiver import Receiver

    with Receiver(folder, TOKEN, host=Link.far_address, port=PORT):
        while True:
            time.sleep(3600)


def measure(options: argparse.Namespace, work: Path, link: Link) -> None:
    payload_bytes = make_checkpoint(work / "near", 3_000_000 if options.quick else 24_000_000, options.seed)
    control = link.set_congestion_control(*(("cubic", "reno") if options.bare else ("bbr",)))
    print(f"{payload_bytes / 1e6:.1f} MB, peers with {control}")
    chance, runs = random.Random(options.seed), []
    points = {what: int(chance.uniform(0.2, 0.8) * payload_bytes) for what in _DISTURBANCES}
    for tool in tools(work):
        if options.only not in (None, tool.name):
            continue
        if shutil.which(tool.send(work)[0]) is None:
            print(f"{tool.name} is not installed", file=sys.stderr)
            continue
        for what in ("undisturbed", *_DISTURBANCES):
            course = Course(link, tool, work / "near", work / "far")
            runs.append(course.run(what, points.get(what)))
            print(runs[-1], file=sys.stderr, flush=True)
    print("\n".join(report(runs, payload_bytes)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="3 MB instead of 24")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one tool: wattline, rsync or rclone")
    parser.add_argument("--bare", action="store_true", help="peers without BBR")
    parser.add_argument("--send", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--receive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send or options.receive:
        send(options.send) if options.send else receive(options.receive)
        return 0
    try:
        with (
            tempfile.TemporaryDirectory(prefix="poor-link-") as work,
            poor_link(Quality(seed=options.seed)) as link,
        ):
            measure(options, Path(work), link)
    except CannotError as error:
        print(f"no link can be made here: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
