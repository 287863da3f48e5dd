"""The checkpoint commands: what is saved, is it whole, and where else does it lie?"""

from __future__ import annotations

import os
import ssl
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from wattline.checkpoint import (
    CheckpointError,
    Keep,
    NewerSchemaError,
    Store,
    copy_checkpoint,
    coverage,
    list_checkpoints,
    prune,
    restore,
)
from wattline.checkpoint.export import export_safetensors, export_torch
from wattline.checkpoint.reading import open_checkpoint, raw_bytes_of, verify_tensors
from wattline.checkpoint.receiver import Receiver
from wattline.checkpoint.stores import TOKEN_VARIABLE
from wattline.cli.bytes_progress import BytesProgress
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.repositories import find_store, pinned_digests
from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.plane.moments import iso
from wattline.units import BANDWIDTH, QuantityError, format_bytes, format_seconds, format_share

_SECONDS_PER_DAY = 86400.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A checkpoint in a listing; of a damaged one only its name and why."""

    name: str
    why: str = ""
    step: int | None = None
    epoch: int | None = None
    saved_at: str | None = None
    saved_at_seconds: float | None = None
    digest: str = ""
    parent: str | None = None
    raw_bytes: int = 0
    added_bytes: int = 0  # that it brought to the repository
    needs_bytes: int = 0  # of all that is needed to restore it
    ratio: float | None = None
    lineage: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def list_all(where: str | None, *, as_json: bool) -> int:
    store = find_store(where)
    rows = [_describe(store, entry.name) for entry in list_checkpoints(store)]
    if as_json:
        stored_bytes = sum(stored.size_bytes for stored in store.list())
        print_json({"store": store.address, "stored_bytes": stored_bytes, "checkpoints": rows})
        return 0
    console = stdout_console()
    if not rows:
        console.print(plain(f"{store.address} holds no checkpoint"))
        return 0
    table = columns("NAME", "AGE", "IN MEMORY", "ADDED", "RATIO", "BLAKE3")
    for row in rows:
        if row.why:
            table.add_row(row.name, "", "", "", "", plain(f"damaged: {row.why}"))
            continue
        table.add_row(
            row.name,
            format_seconds(max(0.0, time.time() - (row.saved_at_seconds or 0.0))),
            format_bytes(row.raw_bytes),
            format_bytes(row.added_bytes),
            format_share(row.ratio) if row.ratio is not None else "",
            row.digest[:16],
        )
    console.print(table)
    whole_bytes = sum(stored.size_bytes for stored in store.list())
    console.print(plain(f"{format_bytes(whole_bytes)} in {store.address}"), style="dim")
    return 0


def verify_all(where: str | None, name: str | None, *, as_json: bool) -> int:
    store = find_store(where)
    names = [entry.name for entry in list_checkpoints(store)] if name is None else [name]
    with BytesProgress() as progress:
        found = [{"name": each, "why": _fault_of(store, each, progress)} for each in names]
    damaged = [one for one in found if one["why"]]
    if as_json:
        print_json({"store": store.address, "checkpoints": found, "whole": not damaged})
        return 1 if damaged else 0
    console = stdout_console()
    for one in found:
        console.print(plain(f"{one['name']}: {one['why'] or 'whole'}"), soft_wrap=True)
    if not found:
        console.print(plain(f"{store.address} holds no checkpoint"))
    return 1 if damaged else 0


def restore_to(where: str | None, name: str | None, to: str, file: Path, *, as_json: bool) -> int:
    store = find_store(where)
    restored = restore(store, name)
    if restored is None:
        raise UnavailableError(f"{store.address} holds no checkpoint", hint="name another repository")
    (export_torch if to == "torch" else export_safetensors)(restored.tree, file)
    told = {
        "name": restored.name,
        "step": restored.step,
        "digest": restored.digest,
        "file": str(file),
        "format": to,
        "raw_bytes": restored.raw_bytes,
        "passed_over": [{"name": one.name, "why": one.why} for one in restored.rejected],
    }
    if as_json:
        print_json(told)
        return 0
    console = stdout_console()
    for one in restored.rejected:
        console.print(plain(f"passed over {one.name}: {one.why}"), soft_wrap=True)
    size = format_bytes(restored.raw_bytes)
    console.print(plain(f"{restored.name} (step {restored.step}, {size}) is in {file}"), soft_wrap=True)
    return 0


def replicate_to(
    where: str | None, to: str, *, rate: str | None, newest: bool, check: bool, as_json: bool
) -> int:
    bytes_per_second = None if rate is None else _read_rate(rate)
    source, target = find_store(where), find_store(to, bytes_per_second=bytes_per_second, is_new=True)
    names = coverage(source, target).missing
    if check:
        return _tell_coverage(source, target, as_json=as_json)
    if newest:
        names = names[:1] if names and names[0] == list_checkpoints(source)[0].name else ()
    copied = []
    with BytesProgress() as progress:
        for name in names:
            done = copy_checkpoint(source, target, name=name, progress=progress.follow(name))
            assert done is not None
            copied.append(done)
    if as_json:
        print_json(
            {
                "from": source.address,
                "to": target.address,
                "copied": [
                    {"name": one.name, "size_bytes": one.size_bytes, "sent_bytes": one.sent_bytes}
                    for one in copied
                ],
            }
        )
        return 0
    console = stdout_console()
    for one in copied:
        console.print(plain(f"{one.name}: {format_bytes(one.sent_bytes)} sent"))
    if not copied:
        console.print(plain(f"{target.address} has it all"), soft_wrap=True)
    return 0


def receive_into(folder: Path, *, host: str, port: int, certificate: Path | None) -> int:
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise UsageError(
            f"{TOKEN_VARIABLE} is not set: whoever sends must know a token",
            hint="python -c 'import secrets; print(secrets.token_urlsafe())' makes one",
        )
    if certificate is None and host not in _LOOPBACK:
        sys.stderr.write("wattline: without --certificate the token travels in the open\n")
    try:
        with Receiver(folder, token, host=host, port=port, tls=_read_certificate(certificate)) as receiver:
            sys.stderr.write(f"wattline: {folder} receives at {receiver.url}; Ctrl-C ends it\n")
            while True:
                time.sleep(_SECONDS_PER_DAY)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        raise UnavailableError(
            f"{host}:{port}: cannot be listened at: {error.strerror or error}", hint="choose another --port"
        ) from error


def _read_certificate(path: Path | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--certificate {path}: {error}", hint="give a PEM file with both") from error
    return context


def prune_all(
    where: str | None,
    *,
    keep_last: int,
    keep_best: int,
    by: str,
    keep_days: float,
    pins: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> int:
    store = find_store(where)
    pinned = frozenset(pins) | pinned_digests()
    keep = Keep(
        last=keep_last,
        best=keep_best,
        by=by,
        within_seconds=keep_days * _SECONDS_PER_DAY,
        pinned=pinned,
    )
    pruned = prune(store, keep, dry_run=dry_run)
    if as_json:
        print_json(
            {
                "store": store.address,
                "dry_run": dry_run,
                "removed": pruned.checkpoints,
                "freed_bytes": pruned.freed_bytes,
            }
        )
        return 0
    console = stdout_console()
    verb = "would go" if dry_run else "went"
    for name in pruned.checkpoints:
        console.print(plain(f"{name} {verb}"))
    console.print(plain(f"{len(pruned.checkpoints)} {verb}, {format_bytes(pruned.freed_bytes)} freed"))
    return 0


def _read_rate(text: str) -> float:
    try:
        return BANDWIDTH.parse(text) / 8.0
    except QuantityError as error:
        raise UsageError(f"--rate {text[:40]!r}: {error}") from error


def _describe(store: Store, name: str) -> Row:
    try:
        opened = open_checkpoint(store, name)
    except NewerSchemaError:
        raise
    except CheckpointError as error:
        return Row(name=name, why=error.message)
    manifest = opened.manifest
    raw_bytes = raw_bytes_of(manifest)
    packs = manifest.table.packs.values()
    own_bytes = sum(pack.size_bytes for pack in packs if pack.name.startswith(f"packs/{name}-"))
    added_bytes = own_bytes + len(opened.raw_manifest)
    return Row(
        name=name,
        step=manifest.step,
        epoch=manifest.epoch,
        saved_at=iso(manifest.saved_at),
        saved_at_seconds=manifest.saved_at,
        digest=opened.digest,
        parent=manifest.parent,
        raw_bytes=raw_bytes,
        added_bytes=added_bytes,
        needs_bytes=sum(pack.size_bytes for pack in packs) + len(opened.raw_manifest),
        ratio=added_bytes / raw_bytes if raw_bytes else None,
        lineage=dict(manifest.lineage),
        metrics=dict(manifest.metrics),
    )


def _fault_of(store: Store, name: str, progress: BytesProgress) -> str:
    try:
        opened = open_checkpoint(store, name)
        whole_bytes = sum(chunk.raw_bytes for chunk in opened.manifest.table.chunks.values())
        follow, read_bytes = progress.follow(name), 0

        def count(more_bytes: int) -> None:
            nonlocal read_bytes
            read_bytes += more_bytes
            follow(read_bytes, whole_bytes)

        verify_tensors(opened, count)
    except NewerSchemaError:
        raise
    except CheckpointError as error:
        return error.message
    return ""


def _tell_coverage(source: Store, target: Store, *, as_json: bool) -> int:
    found = coverage(source, target)
    if as_json:
        print_json(
            {
                "from": source.address,
                "to": target.address,
                "complete": found.complete,
                "missing": found.missing,
                "missing_bytes": found.missing_bytes,
            }
        )
        return 0 if found.is_full else 1
    if not found.is_full:
        raise RefusedError(
            f"{target.address} lacks {len(found.missing)} of "
            f"{len(found.missing) + len(found.complete)} checkpoints, {format_bytes(found.missing_bytes)}",
            hint="run the same without --check",
        )
    stdout_console().print(plain(f"{target.address} has it all"), soft_wrap=True)
    return 0
