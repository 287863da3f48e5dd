"""Does the real code take a step? Every phase once, in order, small, on a processor, before a GPU is touched.

The source and the data are copied; the copy is run under limits and without a network, with as many steps and
such parameters as the phase's `rehearse` says. `wattline.train` ends its loop after those steps. Other
scripts run to their end, or for as long as they may: still at work by then is a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.rehearsal.confining import run_confined
from wattline.checks.preflight.rehearsal.staging import Stage, lay_out, read_told
from wattline.checks.preflight.rehearsal.verdicts import Rehearsed, judge
from wattline.errors import WattlineError
from wattline.spec.pipeline import Phase
from wattline.spec.preparation import Rehearsal


def check_rehearsal(asking: Asking) -> Iterator[Check]:
    if not asking.rehearse:
        message = "not asked for: --rehearse runs each phase for a step"
        yield Check(check="rehearsal", outcome="skip", message=message)
        return
    with TemporaryDirectory(prefix="wattline-rehearsal-", ignore_cleanup_errors=True) as scratch:
        try:
            stage = lay_out(asking, Path(scratch).resolve())
        except WattlineError as error:
            yield Check(check="rehearsal", outcome="skip", message=error.message, fix=error.hint or "")
            return
        yield from _rehearse_all(asking, stage)


def _rehearse_all(asking: Asking, stage: Stage) -> Iterator[Check]:
    """A phase that waits for one that was not rehearsed, or failed, has nothing to begin with."""
    without: set[str] = set()
    for name in asking.pipeline.order():
        phase = asking.pipeline.phases[name]
        before = [earlier for earlier in phase.after if earlier in without]
        if phase.rehearse == "skip":
            without.add(name)
            message = "the pipeline says to skip it"
            yield Check(check="rehearsal", subject=name, outcome="skip", message=message)
        elif before and "rehearse" not in phase.model_fields_set:
            without.add(name)
            message = f"it waits for {', '.join(before)}, which was not rehearsed or failed"
            yield Check(check="rehearsal", subject=name, outcome="skip", message=message)
        else:
            check = _rehearse(asking, stage, name, phase, phase.rehearse)
            if check.outcome == "fail":
                without.add(name)
            yield check


def _rehearse(asking: Asking, stage: Stage, name: str, phase: Phase, rehearsal: Rehearsal) -> Check:
    try:
        environment = stage.environment(name, phase, rehearsal)
        confined = run_confined(
            rehearsal.run or phase.run,
            folder=stage.work,
            environment=environment,
            within_seconds=rehearsal.within,
        )
    except WattlineError as error:
        return Check(
            check="rehearsal",
            subject=name,
            outcome="fail",
            message=error.message,
            fix=error.hint or "see rehearse in the pipeline",
            file=asking.document,
        )
    rehearsed = Rehearsed(
        phase=name,
        document=asking.document,
        work=stage.work,
        steps=rehearsal.steps,
        within_seconds=rehearsal.within,
        confined=confined,
        told=read_told(stage, name),
        hidden=tuple(filter(None, map(asking.environment.get, asking.pipeline.secrets))),
    )
    return judge(rehearsed)
