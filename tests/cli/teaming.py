"""A journal of a desk with two teams, quotas, a role and SLOs, written by hand."""

from __future__ import annotations

import time
from pathlib import Path

from cli.looking import Writing
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    Ending,
    JobRequest,
    RunSubmitted,
    Usage,
)

HOUR = 3600.0
POLICY = """\
policy: weekly
teams:
  nlp: {quota: {gpu_hours: 4, usd: 500}}
  vision: {quota: {gpu_hours: 200}, limit: soft}
roles: {capacity-approver: [grace, joan]}
rules:
  - {name: small, when: job.gpus > 1, say: one GPU each, mode: block}
slos:
  - {name: starts-soon, indicator: start_wait_seconds, objective: 95%, within: 12min}
  - {name: vision-ends-well, indicator: completion, objective: 90%, window: 7d, project: vision}
"""


class Teams(Writing):
    """`ago_seconds` says how long ago its journal began."""

    def __init__(self, root: Path, policy: str = POLICY, *, ago_seconds: float = 600.0) -> None:
        self._ago_seconds = ago_seconds
        super().__init__(root)
        written = root.parent / "policy.yaml"
        written.write_text(policy)
        assert self.session.state is not None
        facility = self.session.state.adopted["facility_sha256"]
        self.step(self.session.adopt(facility, self.session.keep_policy(written), self.now))

    def reopen(self, root: Path) -> None:
        super().reopen(root)
        if self.session.state is None:
            self.now = time.time() - self._ago_seconds

    def ask(self, run: str, project: str = "nlp", *, hours: float | None = 1.0, gpus: int = 1) -> None:
        most = None if hours is None else hours * HOUR
        job = JobRequest(job=f"{run}/train", run=run, project=project, gpus=gpus, max_duration_seconds=most)
        event = RunSubmitted(at=self.now, project=project, run=run, pipeline="p", jobs=(job,))
        self.step(event)

    def begin(self, run: str) -> None:
        self.decide()
        self.step(AttemptStarted(at=self.now, job=f"{run}/train", attempt=1))

    def end(self, run: str, *, gpu_hours: float = 0.0, ending: Ending = Ending.SUCCEEDED) -> None:
        usage = Usage(gpu_hours=gpu_hours, usd=2 * gpu_hours)
        self.step(AttemptEnded(at=self.now, job=f"{run}/train", attempt=1, ending=ending, usage=usage))
