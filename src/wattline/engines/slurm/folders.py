"""Folders: may the user whom a job runs as write where it has to?"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from wattline.engines.contract import Launch
from wattline.errors import UnavailableError


def user_of(launch: Launch, wanted: str) -> str:
    """Whom to run it as: a login name, or nothing for the user of this process."""
    name = launch.user if wanted == "submitter" else wanted
    if not name or name == _login(os.geteuid()):
        return ""
    if os.geteuid() != 0:
        raise UnavailableError(
            f"attempt {launch.attempt}: it should run as {name}, and only root may submit for others",
            hint="run Wattline as root, or leave `user` out of the site's engine",
        )
    return name


def hand_over(launch: Launch, directory: Path, user: str) -> None:
    """Give the attempt's folders to who runs it."""
    if not user:
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise UnavailableError(
            f"attempt {launch.attempt}: no user {user} here",
            hint="submit as somebody whom this machine knows",
        ) from None
    for folder in (directory, *launch.folders):
        folder.mkdir(parents=True, exist_ok=True)
        _check_way(folder, entry)
        for parent, folders, files in os.walk(folder):
            for name in (".", *folders, *files):
                os.chown(Path(parent) / name, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def _check_way(folder: Path, entry: pwd.struct_passwd) -> None:
    groups = set(os.getgrouplist(entry.pw_name, entry.pw_gid))
    for parent in folder.resolve().parents:
        found = parent.stat()
        bit = 0o100 if found.st_uid == entry.pw_uid else 0o010 if found.st_gid in groups else 0o001
        if not found.st_mode & bit:
            raise UnavailableError(
                f"folder {parent}: {entry.pw_name}, whom the job runs as, may not pass through it",
                hint=f"chmod o+x {parent}, or set WATTLINE_HOME to a folder that is open to those who train",
            )


def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
