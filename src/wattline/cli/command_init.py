"""The init command: from a folder with a training script to something that `wattline run` runs."""

from __future__ import annotations

from pathlib import Path

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.starting import Script, facility_text, find_script, pipeline_text
from wattline.cli.writing import write_atomically
from wattline.errors import UsageError
from wattline.spec import FacilityDocument, Pipeline, build_facility, parse_document
from wattline.telemetry import nvml_unavailable_reason, read_nvml_devices

_PIPELINE, _FACILITY = "wattline.yaml", "facility.yaml"


def init_folder(folder: Path, *, script: str | None, force: bool, as_json: bool) -> int:
    there = [name for name in (_PIPELINE, _FACILITY) if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder.resolve()} has {' and '.join(there)} already", hint="--force writes anew")
    found = find_script(folder, script)
    devices = read_nvml_devices()
    texts = {_PIPELINE: pipeline_text(folder.resolve(), found), _FACILITY: facility_text(devices)}
    # What is written must read back: nothing is written before both are shown to.
    parse_document(texts[_PIPELINE].encode(), Pipeline, file=_PIPELINE)
    facility = parse_document(texts[_FACILITY].encode(), FacilityDocument, file=_FACILITY)
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    emulated = any(site.telemetry.source == "emulated" for site in facility.sites.values())
    next_command = f"wattline run --facility {_FACILITY}"
    if as_json:
        print_json(
            {
                "script": found.name,
                "asked_through": _asked_through(found),
                "written": list(texts),
                "emulated": emulated,
                "nvml": {"devices": len(devices), "reason": None if devices else nvml_unavailable_reason()},
                "next": next_command,
            }
        )
        return 0
    console = stdout_console()
    through = _asked_through(found)
    how = "which keeps no checkpoints: it starts over" if through is None else f"asked through {through}"
    console.print(f"{_PIPELINE}   runs {plain(found.name)}, {how}")
    gpus = build_facility(facility).gpus
    machine = "an emulated GPU: no NVIDIA driver answers" if emulated else f"{gpus} of its NVIDIA GPUs"
    console.print(f"{_FACILITY}   this machine, with {machine}")
    console.print(f"next: {next_command}", style="bold")
    return 0


def _asked_through(script: Script) -> str | None:
    """How a script can be asked to save; None: not at all."""
    if script.uses_train:
        return "wattline.train"
    return "signals" if script.checkpoint_signal is not None else None
