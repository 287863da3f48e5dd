"""Whoever looks at all processes meets some that end under its eyes."""

from __future__ import annotations

import os

import pytest

from wattline.engines.supervisor.tree import Tree, catches


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError, PermissionError])
def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says ESRCH of a folder in /proc whose process ends between finding and entering it: seen 305
    times in 20 s on a machine whose processes come and go. It ended supervisors without a result."""
    ending = f"/proc/{os.getpid()}/"
    open_really = os.open

    def open_late(path: str, flags: int) -> int:
        if path.startswith(ending):
            raise error
        return open_really(path, flags)

    monkeypatch.setattr(os, "open", open_late)
    assert os.getpid() not in {process.pid for process in Tree(os.getppid()).scan()}
    assert not catches(os.getpid(), 15)
