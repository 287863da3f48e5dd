"""What a check may look at; what it says is a `Check` of the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wattline.checks.report import Check, Outcome
from wattline.facility import DEVICES, Device
from wattline.spec import Pipeline, Policy

__all__ = ["Asking", "Check", "Outcome"]


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
