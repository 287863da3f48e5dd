"""Node caps: how does a cap reach the GPUs of a node on which only a small program may set limits?

The program is started once for each node, by a command that the site's document gives, and asked over its
standard input. When this process ends, that input ends, and the program puts every limit back.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from wattline.errors import UnavailableError, UsageError
from wattline.facility import Node, PowerCaps, Site

_MOST_ANSWER_BYTES = 1 << 20
_CLOSING_SECONDS = 10.0


class _Program:
    """The program of one node, started when it is first needed and again after it ended."""

    def __init__(self, node: Node, caps: PowerCaps) -> None:
        self._node, self._timeout_seconds = node.name, caps.timeout_seconds
        self._command = [word.replace("{node}", node.hostname) for word in caps.command]
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, **asked: object) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            line = self._hear(process)
            answer = json.loads(line)
        except (OSError, ValueError, RecursionError, TimeoutError) as error:
            self.close()
            why = "timed out" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise UnavailableError(f"{self._node}: its helper does not answer: {why[:200]}") from None
        if not isinstance(answer, dict) or answer.get("ok") is not True:
            words = answer.get("error") if isinstance(answer, dict) else answer
            raise UnavailableError(f"{self._node}: its helper said no: {str(words)[:300]}")
        return answer

    def close(self) -> None:
        """End its input: it puts limits back and leaves."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has left already
            process.stdin.close()
        try:
            process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
                )
            except OSError as error:
                raise UnavailableError(
                    f"{self._node}: its helper does not start: {self._command[0]}: {error.strerror or error}",
                    hint="power_caps.command in the facility document",
                ) from None
        return self._process

    def _hear(self, process: subprocess.Popen[bytes]) -> bytes:
        """One line, in time."""
        assert process.stdout is not None
        deadline, heard = time.monotonic() + self._timeout_seconds, b""
        while not heard.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                raise OSError("it ended")
            heard += piece
            if len(heard) > _MOST_ANSWER_BYTES:
                raise ValueError("its answer has no end")
        return heard


class NodeCapActuator:
    """Caps attempts that hold whole nodes of one site."""

    name = "helper"
    kinds = frozenset({"cap_power"})
    is_slow = True

    def __init__(self, site: Site, caps: PowerCaps) -> None:
        nodes = [node for rack in site.racks for node in rack.nodes]
        self._gpus = {node.name: node.gpus for node in nodes}
        self._helpers = {node.name: _Program(node, caps) for node in nodes}
        self._nodes: dict[str, Mapping[str, int]] = {}
        self._capped: set[str] = set()

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        self._nodes[attempt] = {node: gpus for node, gpus in nodes.items() if gpus}

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        """Limit all GPUs of its nodes, or none: where one node cannot, the others are put back."""
        nodes = self._nodes.get(attempt)
        if nodes is None:
            raise UsageError(f"helper: attempt {attempt} was not begun here")
        if fraction >= 1.0:
            if attempt in self._capped:
                self._restore(nodes)
                self._capped.discard(attempt)
            return
        parts = [node for node, gpus in nodes.items() if gpus < self._gpus[node]]
        if parts:
            node = parts[0]
            raise UnavailableError(
                f"{attempt} has {nodes[node]} of the {self._gpus[node]} GPUs of {node}: which ones is not "
                "known, so no limit is set",
                hint="whole nodes can be capped",
            )
        self._capped.add(attempt)
        try:
            for node, gpus in nodes.items():
                self._helpers[node].ask(do="cap", gpus=list(range(gpus)), fraction=fraction)
        except UnavailableError:
            self._restore_quietly(attempt, nodes)
            raise

    def end(self, attempt: str) -> None:
        """An attempt is over: its nodes are as they were."""
        nodes = self._nodes.pop(attempt, None)
        if nodes is not None and attempt in self._capped:
            self._capped.discard(attempt)
            self._restore(nodes)

    def close(self) -> None:
        for helper in self._helpers.values():
            helper.close()

    def _restore(self, nodes: Mapping[str, int]) -> None:
        for node, gpus in nodes.items():
            self._helpers[node].ask(do="restore", gpus=list(range(gpus)))

    def _restore_quietly(self, attempt: str, nodes: Mapping[str, int]) -> None:
        self._capped.discard(attempt)
        for node, gpus in nodes.items():
            try:
                self._helpers[node].ask(do="restore", gpus=list(range(gpus)))
            except UnavailableError:
                continue  # its helper has ended, which puts them back; the first fault is the one to tell
