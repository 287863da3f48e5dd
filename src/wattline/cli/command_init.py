"""The init command: from a folder with a training script, or an empty one, to what `wattline run` runs."""

from __future__ import annotations

from pathlib import Path

from wattline.cli.paving import PIPELINE, POLICY, lay_files, template_files, template_purpose
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.starting import Script, facility_text, find_script, pipeline_text
from wattline.errors import UsageError
from wattline.plane.writing import write_atomically
from wattline.spec import FacilityDocument, Pipeline, build_facility, parse_document
from wattline.spec.shipped import shipped_templates
from wattline.telemetry.nvml import nvml_unavailable_reason, read_nvml_devices

_FACILITY = "facility.yaml"
# What people open first, of what a template brings.
_SAY = {
    "README.md": "begin here",
    PIPELINE: "what runs, what it may take, what must hold",
    POLICY: "what the team allows",
    "params.json": "sizes, steps and seed",
    ".github/workflows/wattline-check.yml": "what a pull request is told",
    ".github/workflows/wattline-comment.yml": "… in a comment, also from forks",
}


def begin(
    folder: Path,
    *,
    template: str | None,
    script: str | None,
    lists: bool,
    no_ci: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Which of the three was meant: the names of templates, a template, or the script that is there?"""
    if lists:
        return _list_templates(as_json=as_json)
    if template is not None:
        if script is not None:
            raise UsageError(f"template {template} has scripts of its own", hint="leave --script out")
        return _lay_template(folder, template, with_ci=not no_ci, force=force, as_json=as_json)
    if no_ci:
        raise UsageError("--no-ci is for a template", hint="name one; `wattline init --list` shows them")
    return _describe_folder(folder, script=script, force=force, as_json=as_json)


def _describe_folder(folder: Path, *, script: str | None, force: bool, as_json: bool) -> int:
    there = [name for name in (PIPELINE, _FACILITY) if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder.resolve()} has {' and '.join(there)} already", hint="--force writes anew")
    found = find_script(folder, script)
    devices = read_nvml_devices()
    texts = {PIPELINE: pipeline_text(folder.resolve(), found), _FACILITY: facility_text(devices)}
    # What is written must read back: nothing is written before both are shown to.
    parse_document(texts[PIPELINE].encode(), Pipeline, file=PIPELINE)
    facility = parse_document(texts[_FACILITY].encode(), FacilityDocument, file=_FACILITY)
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    emulated = any(site.is_emulated for site in facility.halls.values())
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
    console.print(f"{PIPELINE}   runs {plain(found.name)}, {how}")
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


def _list_templates(*, as_json: bool) -> int:
    purposes = {name: template_purpose(source) for name, source in shipped_templates().items()}
    if as_json:
        print_json({"templates": [{"name": name, "say": say} for name, say in purposes.items()]})
        return 0
    table = columns("template", "")
    for name, say in purposes.items():
        table.add_row(name, say)
    stdout_console().print(table)
    return 0


def _lay_template(folder: Path, template: str, *, with_ci: bool, force: bool, as_json: bool) -> int:
    files = template_files(template, folder, with_ci=with_ci)
    lay_files(folder, files, force=force)
    pipeline = parse_document(files[PIPELINE], Pipeline, file=PIPELINE)
    next_command = f"wattline check --policy {POLICY} && wattline run --policy {POLICY}"
    misplaced = _repository_above(folder) if with_ci else None
    if as_json:
        print_json(
            {
                "template": template,
                "pipeline": pipeline.pipeline,
                "owner": pipeline.owner,
                "written": sorted(files),
                "repository": None if misplaced is None else str(misplaced),
                "next": next_command,
            }
        )
        return 0
    console = stdout_console()
    table = columns("", "")
    table.show_header = False
    for path in sorted(files):
        table.add_row(path, _SAY.get(path, ""))
    console.print(table)
    if misplaced is not None:
        said = f"GitHub reads workflows in {plain(str(misplaced))} only: move .github there"
        console.print(said, soft_wrap=True)
    console.print(f"next: {next_command}", style="bold", soft_wrap=True)
    return 0


def _repository_above(folder: Path) -> Path | None:
    """The repository that the folder lies inside of, where workflows are read from."""
    here = folder.resolve()
    above = next((place for place in (here, *here.parents) if (place / ".git").exists()), here)
    return None if above == here else above
