"""What would a first pipeline and a first facility say, for the script and the machine at hand?"""

from __future__ import annotations

import ast
import getpass
import os
import re
import shlex
import socket
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from wattline.cli.command_data import data_name
from wattline.cli.pinning import scalar
from wattline.errors import UnavailableError, UsageError
from wattline.live import hash_data
from wattline.spec.nearest import nearest
from wattline.spec.tree import printable
from wattline.telemetry.nvml import NvmlDevice

_USUAL = ("train.py", "main.py")
_NOT_TRAINING = re.compile(r"(?:test_.*|.*_test|conftest|setup|noxfile)\.py")
_MOST_SCRIPT_BYTES = 4 << 20
_MOST_ENTRIES = 8  # with more than this in ./data, the folder as a whole is one entry
_PINNED_AT_ONCE_BYTES = 256 << 20
_HOST_WATTS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A training script, and how it can be asked to save."""

    name: str
    uses_train: bool
    checkpoint_signal: str | None


def find_script(folder: Path, named: str | None) -> Script:
    """The script that is named, else train.py or main.py, else the only one there is."""
    scripts = sorted(path.name for path in folder.glob("*.py"))
    if named is not None:
        inside = not Path(named).is_absolute() and ".." not in Path(named).parts
        if not inside or not (folder / named).is_file():
            close = nearest(named, scripts)
            hint = (
                f"did you mean {close}?" if close else f"here is {', '.join(scripts) or 'no Python script'}"
            )
            raise UsageError(f"script {named!r} is not in {folder}", hint=hint)
        return _read_script(folder, named)
    likely = [name for name in _USUAL if name in scripts]
    others = [name for name in scripts if not _NOT_TRAINING.fullmatch(name)]
    if not likely and len(others) != 1:
        what = f"{len(others)} scripts and none is" if others else "no"
        such = (
            f", such as --script {others[0]}"
            if others
            else ", or begin with a template: wattline init --list"
        )
        raise UsageError(f"{folder} has {what} train.py or main.py", hint=f"name it with --script{such}")
    return _read_script(folder, likely[0] if likely else others[0])


def _read_script(folder: Path, name: str) -> Script:
    try:
        with (folder / name).open("rb") as file:
            source = file.read(_MOST_SCRIPT_BYTES)
    except OSError as error:
        raise UnavailableError(f"{name}: cannot be read: {error.strerror or error}") from error
    signals = [name for name in ("SIGUSR1", "SIGUSR2") if name.encode() in source]
    return Script(
        name=name, uses_train=imports_train(source), checkpoint_signal=signals[0] if signals else None
    )


def imports_train(source: bytes) -> bool:
    """Whether a script imports `wattline.train`; it is read, never run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(alias.name.startswith("wattline.train") for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom):
            from_train = (node.module or "").startswith("wattline.train")
            if from_train or (node.module == "wattline" and any(a.name == "train" for a in node.names)):
                return True
    return False


def pipeline_text(folder: Path, script: Script) -> str:
    """A `wattline.yaml` with one phase."""
    name = slug(folder.name, "model")
    lines = [
        "# A first pipeline, written by `wattline init`: check owner, project and intended_use.",
        f"pipeline: {scalar(name)}",
        f"model: {scalar(name)}",
        f"owner: {scalar(slug(user_name(), 'me'))}",
        "project: default",
        f"intended_use: {scalar('trained by ' + script.name)}",
        *_data_lines(folder),
        "phases:",
        "  train:",
        f"    run: {scalar('python ' + shlex.quote(script.name))}",
        f"    profile: {{cpus: {min(4, os.cpu_count() or 1)}}}",
        "    resources: {gpus: 1}",
        "    constraints: {max_duration: 6h}",
    ]
    if script.uses_train:
        lines.append("    checkpoint: {every: auto, keep: 3}")
    elif script.checkpoint_signal:
        lines += [
            "    # The script is not changed: it is asked by signals, and what is in out/ goes with it.",
            f"    signals: {{checkpoint: {script.checkpoint_signal}, finish: SIGTERM, saved_to: out/}}",
        ]
    else:
        lines += ["    # This script keeps no checkpoints: after a stop or a crash it starts over."]
    lines += [
        "# What must hold of out/metrics.json before anything is released:",
        "# gates:",
        "#   - accuracy >= 0.9",
        f"# release: {{name: {scalar(name)}, to: staging}}",
    ]
    return "\n".join(lines) + "\n"


def _data_lines(folder: Path) -> list[str]:
    """What lies in ./data: pinned where that is quick, for `wattline data pin` where it is not."""
    data = folder / "data"
    if not data.is_dir():
        return []
    entries = sorted(entry for entry in data.iterdir() if not entry.name.startswith("."))
    chosen = [entry for entry in entries if entry.name.isprintable()]
    if len(chosen) > _MOST_ENTRIES or len(chosen) < len(entries):
        chosen = [data]
    lines = ["data:"] if chosen else []
    taken: set[str] = set()
    for entry in chosen:
        path = entry.relative_to(folder).as_posix()
        name = data_name(path, taken)
        taken.add(name)
        files = [entry] if entry.is_file() else entry.rglob("*")
        small = sum(file.stat().st_size for file in files if file.is_file()) <= _PINNED_AT_ONCE_BYTES
        pinned = f", sha256: {scalar(hash_data(entry))}" if small else ""
        lines.append(f"  - {{name: {scalar(name)}, path: {scalar(path)}{pinned}}}")
    return lines


def facility_text(devices: list[NvmlDevice]) -> str:
    """A `facility.yaml` of this machine alone: its real GPUs, or one that is emulated."""
    models = Counter(device.name for device in devices if device.name and device.fault is None)
    model, count = models.most_common(1)[0] if models else (None, 1)
    alike = [device for device in devices if device.name == model and device.fault is None]
    gpu = slug(model, "gpu") if model else "A100"
    head = [
        "# This machine, written by `wattline init`. Prices, carbon and cooling are guesses: put yours in.",
        f"facility: {scalar(slug(socket.gethostname(), 'this-machine'))}",
    ]
    if model:
        head += _device_lines(gpu, alike[0])
        telemetry, note, limit_watts = (
            "nvml",
            f"# {printable(model)}, read through NVML",
            _limit_watts(alike[0]),
        )
    else:
        telemetry, note, limit_watts = "emulated", "# no NVIDIA GPU was found: this one is emulated", 400.0
    node = f"gpu: {scalar(gpu)}, gpus: {count}, cpus: {os.cpu_count() or 1}, other: {_HOST_WATTS}W"
    peak_watts = count * limit_watts + _HOST_WATTS
    return "\n".join(
        [
            *head,
            "sites:",
            "  here:",
            "    region: local",
            "    tariff: {energy: 0.20}             # USD per kWh",
            "    carbon: {zone: local, intensity: 400}  # gCO2e per kWh",
            f"    feeds: {{wall: {{rating: {1.5 * peak_watts:.0f}W}}}}",
            f"    loops: {{room: {{kind: air, capacity: {1.2 * peak_watts:.0f}W, supply: 24C}}}}",
            "    racks:",
            "      desk:",
            f"        cap: {1.1 * peak_watts:.0f}W",
            "        power: [wall]",
            "        loop: room",
            f"        nodes: {{{node}}}  {note}",
            "    storage: {throughput: 500MB/s}",
            f"    telemetry: {{source: {telemetry}}}",
            "",
        ]
    )


def _device_lines(gpu: str, device: NvmlDevice) -> list[str]:
    limit, throttle = _limit_watts(device), device.throttle_celsius or 83.0
    slowdown = max(throttle, device.slowdown_celsius or throttle + 5)
    shutdown = max(slowdown, device.shutdown_celsius or slowdown + 5)
    return [
        "devices:",
        f"  {scalar(gpu)}:",
        f"    limit: {limit:.0f}W",
        f"    least_limit: {min(limit, device.least_limit_watts or limit / 2):.0f}W",
        f"    idle: {min(limit, 30.0):.0f}W",
        f"    throttle: {throttle:.0f}C",
        f"    slowdown: {slowdown:.0f}C",
        f"    shutdown: {shutdown:.0f}C",
        "    kelvin_per_watt_air: 0.1           # assumed",
        "    kelvin_per_watt_liquid: 0.05       # assumed",
        "    usd_per_hour: 1.0",
    ]


def _limit_watts(device: NvmlDevice) -> float:
    return device.limit_watts or device.default_limit_watts or 300.0


def slug(text: str | None, otherwise: str) -> str:
    """A name made of what people call something."""
    return re.sub(r"[^a-z0-9]+", "-", (text or "").lower()).strip("-")[:60].strip("-") or otherwise


def user_name() -> str:
    """Who is asking; empty where nobody says."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
