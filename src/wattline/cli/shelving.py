"""Which release did somebody mean? `name`, or `name:channel`, among those on the shelf."""

from __future__ import annotations

from pathlib import Path

from wattline.errors import RefusedError, UsageError
from wattline.plane.finding import unknown
from wattline.plane.session import Session
from wattline.release import Release


def find_channel(session: Session, name: str, channel: str | None) -> tuple[str, str]:
    """A release name and its channel; the channel may be left out where there is only one."""
    if channel is None:
        name, _, named = name.partition(":")
        channel = named or None
    names = released_names(session)
    if name not in names:
        raise unknown("release", name, names)
    channels = _folders(session.home.releases / name)
    if channel is None:
        if len(channels) != 1:
            spelled = " or ".join(f"{name}:{known}" for known in channels)
            raise UsageError(f"release {name} has several channels", hint=f"name it as {spelled}")
        return name, channels[0]
    if channel not in channels:
        raise unknown(f"channel of {name}", channel, channels)
    return name, channel


def current_release(session: Session, name: str, channel: str) -> Release:
    release = session.shelf.current(name, channel)
    if release is None:
        raise RefusedError(f"{name} on {channel} was never released", hint="promote a run first")
    return release


def released_names(session: Session) -> list[str]:
    return _folders(session.home.releases)


def _folders(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
