"""What a check may look at, and what it says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wattline.facility import DEVICES, Device
from wattline.spec import Pipeline, Policy

Outcome = Literal["pass", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check found about one thing, and what to do about it."""

    check: str  # its stable name, such as data.hash: docs/checks.md explains each
    outcome: Outcome  # skip: it could not be looked at, and the message says why
    message: str  # what was found, with the value
    subject: str = ""  # what it is about: a phase, a data entry, a file
    fix: str = ""  # what to do; always there where the outcome is fail
    file: str | None = None  # where to look, from the pipeline's folder
    line: int | None = None

    @property
    def title(self) -> str:
        return f"{self.check} {self.subject}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A pipeline in its folder, and what is around it. Checks read files below the folder, nothing else."""

    pipeline: Pipeline
    policy: Policy
    folder: Path
    document: str = "wattline.yaml"  # the pipeline's own file, from the folder
    source: Collection[str] | None = None  # files that travel with the run; None: all
    sites: Collection[str] | None = None  # the facility's; None: not known
    devices: Mapping[str, Device] = field(default_factory=lambda: DEVICES)  # GPU models of the facility
    environment: Mapping[str, str] = field(default_factory=dict)  # names are looked at, values never shown
    approved: bool = False
    has_secrets: bool = True  # false where nobody gives secrets to what is checked, as to a pull request
    rehearse: bool = False  # run the tiny pass too
