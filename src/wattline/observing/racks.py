"""Racks: where does each node stand, by a table that people keep? Slurm does not know.

CSV with `node` and `rack`, and where known `pdu` (two with a + between), `loop`, `row`, `site` and `cap`. A
 node may be written as Slurm does: `n[1-8]`.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from wattline.engines.slurm.listing import expand_hosts
from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.spec.nearest import nearest
from wattline.spec.quantities import check_name
from wattline.spec.tree import printable
from wattline.units import POWER

COLUMNS = ("node", "rack", "pdu", "loop", "row", "site", "cap")
_NEEDED = ("node", "rack")
LONGEST_RACK = 56  # so that the names of its nodes are no longer than a name may be
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where one node stands; an empty word is not known."""

    rack: str
    pdus: tuple[str, ...] = ()
    loop: str = ""
    row: str = ""
    site: str = ""
    cap_watts: float | None = None


def read_racks(path: Path) -> dict[str, Standing]:
    """By node; DocumentError with every line that is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise DocumentError(Problem(file=str(path), message="the table is too large", allowed="32 MiB"))
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""))
    try:
        return _read(str(path), rows)
    except csv.Error as error:
        raise DocumentError(Problem(file=str(path), line=rows.line_num, message=str(error))) from error


def _read(file: str, rows: csv._reader) -> dict[str, Standing]:  # type: ignore[name-defined]
    names = [name.strip().lower() for name in next(rows, [])]
    problems = [
        Problem(file=file, line=1, column=1, message="this column is missing", field=name)
        for name in _NEEDED
        if name not in names
    ]
    problems += [
        Problem(
            file=file,
            line=1,
            column=1,
            message="there is no such column",
            value=repr(printable(name)),
            allowed=", ".join(COLUMNS),
            nearest=nearest(name, COLUMNS),
        )
        for name in names
        if name not in COLUMNS
    ]
    if problems:
        raise DocumentError(*problems)
    found: dict[str, Standing] = {}
    racks: dict[tuple[str, str], Standing] = {}
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        try:
            _take(found, racks, names, row)
        except (ValueError, UnavailableError) as error:
            shown = printable(",".join(row))
            problems.append(
                Problem(file=file, line=rows.line_num, column=1, message=str(error), value=repr(shown))
            )
    if problems:
        raise DocumentError(*problems[:20])
    return {node: racks[standing.site, standing.rack] for node, standing in found.items()}


def _take(
    found: dict[str, Standing], racks: dict[tuple[str, str], Standing], names: list[str], row: list[str]
) -> None:
    if len(row) != len(names):
        raise ValueError(f"{len(row)} cells under {len(names)} names")
    words = {name: cell.strip() for name, cell in zip(names, row, strict=True)}
    standing = _standing(words)
    place = standing.site, standing.rack
    racks[place] = _agreed(racks.get(place, standing), standing)
    for node in expand_hosts(words["node"]):
        if node in found:
            raise ValueError(f"node {node} stands in two places")
        found[node] = standing


def _agreed(told: Standing, standing: Standing) -> Standing:
    """What all lines of one rack say together: what one leaves out another may say, but not otherwise."""
    pairs = {
        "pdu": (told.pdus, standing.pdus),
        "loop": (told.loop, standing.loop),
        "row": (told.row, standing.row),
        "cap": (told.cap_watts, standing.cap_watts),
    }
    for name, (was, now) in pairs.items():
        if was and now and was != now:
            raise ValueError(f"an earlier line says another {name} of rack {standing.rack}")
    return Standing(
        rack=told.rack,
        pdus=told.pdus or standing.pdus,
        loop=told.loop or standing.loop,
        row=told.row or standing.row,
        site=told.site,
        cap_watts=told.cap_watts or standing.cap_watts,
    )


def _standing(words: dict[str, str]) -> Standing:
    pdus = tuple(filter(None, words.get("pdu", "").split("+")))
    if len(pdus) > 2:
        raise ValueError("a rack hangs on one or two PDUs")
    rest = [words[name] for name in ("loop", "row", "site") if words.get(name)]
    for name in (words["rack"], *pdus, *rest):
        check_name(name)
    if not words["node"]:
        raise ValueError("a node has a name")
    if len(words["rack"]) > LONGEST_RACK:
        raise ValueError(f"the name of a rack has at most {LONGEST_RACK} characters")
    cap = words.get("cap", "")
    return Standing(
        rack=words["rack"],
        pdus=pdus,
        loop=words.get("loop", ""),
        row=words.get("row", ""),
        site=words.get("site", ""),
        cap_watts=POWER.parse(cap) if cap else None,
    )
