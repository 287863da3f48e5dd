"""Preflight: is everything there that the run needs, before a GPU is touched?"""

from __future__ import annotations

from dataclasses import dataclass, field

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.data.drift import check_schema
from wattline.checks.preflight.data.inputs import check_data, check_params, hash_inputs
from wattline.checks.preflight.data.tokenizer import check_tokenizer
from wattline.checks.preflight.entry import check_entry_points
from wattline.checks.preflight.environment.compatibility import check_runtime
from wattline.checks.preflight.environment.image import check_image
from wattline.checks.preflight.environment.importing import check_imports
from wattline.checks.preflight.environment.locking import check_lock
from wattline.checks.preflight.environment.secrets import check_secrets
from wattline.checks.preflight.launching.launch import check_launch
from wattline.checks.preflight.metadata import check_approval, check_metadata, check_replicas
from wattline.checks.preflight.rehearsal.rehearsing import check_rehearsal

__all__ = ["Asking", "Check", "Preflight", "preflight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    checks: tuple[Check, ...]
    data_sha256: dict[str, str] = field(default_factory=dict)  # by path, as found
    params_sha256: str | None = None

    @property
    def passed(self) -> bool:
        return all(check.outcome != "fail" for check in self.checks)


def preflight(asking: Asking) -> Preflight:
    """Every check, also after one has failed: people mend a list faster than a drip of single faults."""
    inputs = hash_inputs(asking)
    checks = [
        *check_metadata(asking),
        *check_approval(asking),
        *check_data(asking, inputs),
        *check_schema(asking),
        *check_replicas(asking),
        *check_params(asking, inputs),
        *check_tokenizer(asking),
        *check_entry_points(asking),
        *check_imports(asking),
        *check_lock(asking),
        *check_image(asking),
        *check_secrets(asking),
        *check_runtime(asking),
        *check_launch(asking),
        *check_rehearsal(asking),
    ]
    data = {each.path for each in asking.pipeline.data}
    return Preflight(
        checks=tuple(checks),
        data_sha256={path: sha256 for path, sha256 in inputs.sha256.items() if path in data},
        params_sha256=inputs.sha256.get(asking.pipeline.params or ""),
    )
