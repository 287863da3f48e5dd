"""Is the lock file in step with what the project declares?

Every declared dependency is in the lock, at a version that its bounds allow. Nothing is resolved and nothing
fetched: whether a newer version is there is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.environment.dependencies import BrokenLock, Lock, Need, read_lock, read_needs

_MOST_NAMED = 20


def check_lock(asking: Asking) -> Iterator[Check]:
    needs = read_needs(asking.folder)
    lock = read_lock(asking.folder)
    if isinstance(lock, BrokenLock):
        yield Check(
            check="lock",
            subject=lock.file,
            outcome="fail",
            message=f"{lock.file} cannot be read: {lock.why}",
            fix="restore it from version control, or lock again",
            file=lock.file,
        )
    elif not needs:
        yield Check(check="lock", outcome="skip", message="the project declares no dependencies")
    elif lock is None:
        yield _check_pins(needs)
    else:
        yield from _check_step(needs, lock)


def _check_pins(needs: list[Need]) -> Check:
    """Without a lock file, versions are as certain as their own bounds."""
    loose = [need for need in needs if not need.is_pinned]
    if not loose:
        message = f"no lock file, but all {len(needs)} dependencies are pinned"
        return Check(check="lock", outcome="pass", message=message)
    names = ", ".join(need.name for need in loose[:5]) + (", …" if len(loose) > 5 else "")
    return Check(
        check="lock",
        outcome="warn",
        message=f"no lock file: {names} may be another version at every run",
        fix="lock them, such as with `uv lock` or `pip-compile`, and commit the file",
        file=loose[0].file,
        line=loose[0].line,
    )


def _check_step(needs: list[Need], lock: Lock) -> Iterator[Check]:
    looked_at = [need for need in needs if lock.has_groups or not need.group]
    faults = [(need, fault) for need in looked_at if (fault := lock.fault(need)) is not None]
    for need, fault in faults[:_MOST_NAMED]:
        yield Check(
            check="lock",
            subject=lock.file,
            outcome="fail",
            message=f"{need.name} {fault}",
            fix=f"bring it up to date ({lock.relock}) and commit {lock.file}",
            file=need.file,
            line=need.line,
        )
    if not faults:
        message = f"{len(looked_at)} dependencies as declared"
        yield Check(check="lock", subject=lock.file, outcome="pass", message=message)
