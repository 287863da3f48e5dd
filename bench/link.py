"""A poor link between two network namespaces: slow, long, lossy, and cut when told.

Linux's netem does this in the kernel, where a kernel has it. This one needs only TUN devices: a process reads
packets at one end and writes them at the other when they are due. It counts what TCP carries for the first
time, which is what an application sent, whatever was lost and sent again below it.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import secrets
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

_TUNSETIFF = 0x400454CA
_IFF_TUN_WITHOUT_HEADER = 0x1001
_MTU_BYTES = 1500
_PROTOCOL_TCP = 6


class CannotError(Exception):
    """This machine does not let a link be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Of each direction."""

    bits_per_second: float = 10e6
    delay_seconds: float = 0.05
    loss: float = 0.05
    queue_bytes: int = 125_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """Application bytes of one direction: (seconds, bytes), as they entered the link and as they left it.

    A connection that begins shows as 0 bytes.
    """

    sent: Sequence[tuple[float, int]]
    arrived: Sequence[tuple[float, int]]

    @property
    def sent_bytes(self) -> int:
        return sum(size for _, size in self.sent)


class Link:
    """The two ends, `near` and `far`, and the process between them."""

    near_address, far_address = "10.213.7.1", "10.213.7.2"

    def __init__(self, near: str, far: str, process: subprocess.Popen[str]) -> None:
        self.near, self.far, self._process = near, far, process

    def cut(self) -> None:
        self._tell("cut")

    def mend(self) -> None:
        self._tell("mend")

    def count(self) -> Counted:
        """What went from near to far since the last count."""
        sent, arrived = self._tell("count")
        return Counted([(at, size) for at, size in sent], [(at, size) for at, size in arrived])

    def run_in(self, namespace: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a command at one end."""
        return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)

    def set_congestion_control(self, *names: str) -> str:
        """The first of these that may be set here; it is for those who do not choose for themselves."""
        for name in names:
            with suppress(CannotError):
                for namespace in (self.near, self.far):
                    setting = f"net.ipv4.tcp_congestion_control={name}"
                    _run("ip", "netns", "exec", namespace, "sysctl", "-qw", setting)
                return name
        raise CannotError(f"none of {', '.join(names)} may be set as congestion control")

    def _tell(self, word: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def poor_link(quality: Quality) -> Iterator[Link]:
    """Two namespaces with a link of this quality between them; CannotError says what is in the way."""
    if os.geteuid() != 0:
        raise CannotError("making network namespaces needs root")
    if not Path("/dev/net/tun").exists():
        raise CannotError("there is no /dev/net/tun")
    mark = secrets.token_hex(3)
    names, devices = (f"near-{mark}", f"far-{mark}"), (f"tn{mark}", f"tf{mark}")
    descriptors: list[int] = []
    try:
        for name, device, own, other in zip(
            names,
            devices,
            (Link.near_address, Link.far_address),
            (Link.far_address, Link.near_address),
            strict=True,
        ):
            _run("ip", "netns", "add", name)
            descriptors.append(_open_tun(device))
            _run("ip", "link", "set", device, "netns", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "addr", "add", own, "peer", other, "dev", device)
            _run("ip", "-n", name, "link", "set", device, "up", "mtu", str(_MTU_BYTES))
        with _forwarding(descriptors, quality) as process:
            yield Link(*names, process)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextmanager
def _forwarding(descriptors: Sequence[int], quality: Quality) -> Iterator[subprocess.Popen[str]]:
    settings = {field: getattr(quality, field) for field in Quality.__slots__}
    process = subprocess.Popen(
        [sys.executable, __file__, json.dumps(settings), *map(str, descriptors)],
        pass_fds=descriptors,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _open_tun(device: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN_WITHOUT_HEADER))
    except OSError as error:
        os.close(descriptor)
        raise CannotError(f"no TUN device can be made: {error.strerror}") from error
    return descriptor


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise CannotError(f"{command[0]} is not installed (iproute2, procps)") from error
    except subprocess.CalledProcessError as error:
        raise CannotError(f"{' '.join(command)}: {error.stderr.strip()}") from error


@dataclass(slots=True)
class _Direction:
    """Packets one way: lost by chance, then queued for the rate, then delayed."""

    quality: Quality
    source: int
    target: int
    chance: random.Random
    free_at: float = 0.0
    flows: dict[tuple[str, bytes], int] = field(default_factory=dict)
    sent: list[tuple[float, int]] = field(default_factory=list)
    arrived: list[tuple[float, int]] = field(default_factory=list)

    def take_in(self, packet: bytes, now: float) -> float | None:
        """When it is due at the other end; None where it is lost."""
        self._note("sent", self.sent, packet, now)
        waiting_bytes = max(0.0, self.free_at - now) * self.quality.bits_per_second / 8
        if self.chance.random() < self.quality.loss or waiting_bytes > self.quality.queue_bytes:
            return None
        self.free_at = max(now, self.free_at) + len(packet) * 8 / self.quality.bits_per_second
        return self.free_at + self.quality.delay_seconds

    def hand_out(self, packet: bytes, now: float) -> None:
        self._note("arrived", self.arrived, packet, now)
        with suppress(OSError):  # a full device loses packets, as links do
            os.write(self.target, packet)

    def _note(self, where: str, log: list[tuple[float, int]], packet: bytes, now: float) -> None:
        """How far this packet moves its flow: TCP's own repetitions do not."""
        if packet[0] >> 4 != 4 or packet[9] != _PROTOCOL_TCP:
            return
        head_bytes = (packet[0] & 15) * 4
        sequence = int.from_bytes(packet[head_bytes + 4 : head_bytes + 8], "big")
        tcp_head_bytes = (packet[head_bytes + 12] >> 4) * 4
        length = int.from_bytes(packet[2:4], "big") - head_bytes - tcp_head_bytes
        is_first = bool(packet[head_bytes + 13] & 2)
        flow = (where, packet[12:20] + packet[head_bytes : head_bytes + 4])
        end = (sequence + is_first + length) % 2**32
        known = self.flows.get(flow)
        moved = 0 if known is None or is_first else (end - known) % 2**32
        if known is None or is_first or 0 < moved < 2**31:
            self.flows[flow] = end
            log.append((now, moved))


def _forward(quality: Quality, near: int, far: int, commands: IO[str]) -> None:
    with suppress(PermissionError):  # a link that waits for a processor shows as one that bursts
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    there = _Direction(quality, near, far, random.Random(quality.seed))
    back = _Direction(quality, far, near, random.Random(quality.seed + 1))
    directions = {near: there, far: back}
    due: list[tuple[float, int, bytes, _Direction]] = []
    number, is_cut = 0, False
    poll = select.poll()
    for descriptor in (near, far, commands.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        now = time.monotonic()
        wait_seconds = max(0.0, due[0][0] - now) if due else 1.0
        for descriptor, _ in poll.poll(int(wait_seconds * 1000 + 0.999)):
            if descriptor == commands.fileno():
                word = commands.readline().strip()
                if not word:
                    return
                is_cut = word == "cut" or (is_cut and word != "mend")
                print(json.dumps([there.sent, there.arrived] if word == "count" else None), flush=True)
                if word == "count":
                    there.sent, there.arrived = [], []
                continue
            for packet in _packets(descriptor):
                now, direction = time.monotonic(), directions[descriptor]
                due_at = direction.take_in(packet, now)
                if due_at is not None and not is_cut:
                    number += 1
                    heapq.heappush(due, (due_at, number, packet, direction))
        if is_cut:
            due.clear()
        while due and due[0][0] <= time.monotonic():
            at, _, packet, direction = heapq.heappop(due)
            direction.hand_out(packet, at)


def _packets(descriptor: int) -> Iterator[bytes]:
    for _ in range(64):  # then the other side has its turn
        try:
            yield os.read(descriptor, 65536)
        except BlockingIOError:
            return


if __name__ == "__main__":
    _forward(Quality(**json.loads(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), sys.stdin)
