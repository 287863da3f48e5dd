"""Is all said that the policy requires of a pipeline, and is what it names there?"""

from __future__ import annotations

from collections.abc import Iterator

from wattline.checks.preflight.asking import Asking, Check
from wattline.spec.nearest import nearest


def check_metadata(asking: Asking) -> Iterator[Check]:
    required = [name for name in asking.policy.required_metadata if name != "approval"]
    missing = [name for name in required if not getattr(asking.pipeline, name)]
    if missing:
        yield Check(
            check="metadata",
            outcome="fail",
            message=f"policy {asking.policy.policy} requires {', '.join(missing)}",
            fix=f"add {', '.join(missing)} to the pipeline",
            file=asking.document,
        )
    else:
        yield Check(check="metadata", outcome="pass", message=f"{', '.join(required)} given")


def check_approval(asking: Asking) -> Iterator[Check]:
    if "approval" not in asking.policy.required_metadata:
        return
    if asking.approved:
        yield Check(check="approval", outcome="pass", message="approved")
    else:
        yield Check(
            check="approval",
            outcome="fail",
            message=f"policy {asking.policy.policy} requires an approval, and there is none",
            fix="have it approved, then say --approved",
        )


def check_replicas(asking: Asking) -> Iterator[Check]:
    """A checkpoint cannot be copied to a site that there is not."""
    if asking.sites is None:
        return
    for name, phase in asking.pipeline.phases.items():
        for wanted in phase.checkpoint.replicate_to if phase.checkpoint else ():
            if wanted not in asking.sites:
                close = nearest(wanted, asking.sites)
                yield Check(
                    check="replicas",
                    subject=name,
                    outcome="fail",
                    message=f"replicate_to names {wanted}, which is no site here",
                    fix=f"did you mean {close}?"
                    if close
                    else f"name one of {', '.join(sorted(asking.sites))}",
                    file=asking.document,
                )
