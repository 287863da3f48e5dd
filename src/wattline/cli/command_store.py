"""The store commands: all that is known here into one file, and back from it."""

from __future__ import annotations

import os
from pathlib import Path

from wattline.cli.bytes_progress import BytesProgress
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.errors import UnavailableError
from wattline.live import Home
from wattline.plane.moments import iso
from wattline.store import BackupInfo, ObjectStore, back_up, restore
from wattline.store.archive import OBJECTS
from wattline.store.opening import DATABASE_NAME, connect
from wattline.units import format_bytes


def back_up_to(file: Path, *, with_objects: bool, force: bool, as_json: bool) -> int:
    home = Home.find()
    database = os.environ.get("WATTLINE_DATABASE")
    if not database and not (home.root / DATABASE_NAME).is_file():
        raise UnavailableError(
            f"nothing was ever run in {home.root}",
            hint="WATTLINE_HOME names another folder, WATTLINE_DATABASE another database",
        )
    objects = ObjectStore(home.objects) if with_objects else None
    with BytesProgress() as progress:
        info = back_up(
            database or str(home.root), file, objects=objects, replace=force, tell=progress.follow("backup")
        )
    if as_json:
        print_json({"file": str(file), **_fields(info)})
    else:
        said = f"{_sentence(info)} in {file} ({format_bytes(info.size_bytes)}), read back and whole"
        if not with_objects:
            said += f"; documents, sources and outputs stay in {home.objects}: --objects takes them along"
        stdout_console().print(plain(said), soft_wrap=True)
    return 0


def restore_from(file: Path, into: str | None, *, force: bool, as_json: bool) -> int:
    home = Home.find()
    where = into or os.environ.get("WATTLINE_DATABASE") or str(home.ensure().root)
    objects = ObjectStore(home.objects)
    with BytesProgress() as progress:
        info = restore(
            file,
            where,
            objects=objects,
            replace=force,
            tell=progress.follow("restore"),
        )
    shown = connect(where).name
    if as_json:
        print_json({"file": str(file), "into": shown, **_fields(info)})
    else:
        said = f"{_sentence(info)} of {iso(info.taken_at)} are now in {shown}; the journal is whole"
        if next(iter(objects.list()), None) is None:
            said += f"; the backup has no objects: copy those of its server into {home.objects} before use"
        stdout_console().print(plain(said), soft_wrap=True)
    return 0


def _sentence(info: BackupInfo) -> str:
    counts = info.counts
    text = f"{info.journal_seq} journal records, {counts['inbox']} messages, {counts.get('tokens', 0)} tokens"
    return f"{text}, {counts.get(OBJECTS, 0)} objects" if info.has_objects else text


def _fields(info: BackupInfo) -> dict[str, object]:
    counts = {name: count for name, count in info.counts.items() if name != OBJECTS}
    return {
        "taken_at": iso(info.taken_at),
        "size_bytes": info.size_bytes,
        "schema_version": info.schema_version,
        "journal": {"records": info.journal_seq, "hash": info.journal_hash},
        "rows": counts,
        "objects": info.counts.get(OBJECTS, 0) if info.has_objects else None,
        "sha256": info.sha256,
    }
