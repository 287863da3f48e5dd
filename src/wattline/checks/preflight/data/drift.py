"""Has data drifted from the profile that was recorded when it was pinned?

`data.hash` says that bytes changed; this says what changed in them, and stays quiet within the tolerances.
What was recorded from a sample may lack a rare value, so then an unknown one is worth a look, not a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from wattline.checks.preflight.asking import Asking, Check, Outcome
from wattline.checks.preflight.data.drift_columns import Drift, allowance, column_drifts
from wattline.checks.preflight.data.profile import profile
from wattline.checks.preflight.data.tables import NotInstalledError
from wattline.errors import DocumentError, WattlineError
from wattline.spec.data_profile import DataProfile, read_profile
from wattline.spec.pipeline import Data
from wattline.units import format_bytes, format_share

_MOST_TOLD = 20


def check_schema(asking: Asking) -> Iterator[Check]:
    """Data without a `schema` has nothing to be held against."""
    for data in asking.pipeline.data:
        if data.schema_ is not None:
            yield from _Entry(asking, data, data.schema_).check()


@dataclass(frozen=True, slots=True)
class _Entry:
    asking: Asking
    data: Data
    schema: str

    def check(self) -> Iterator[Check]:
        pin = f"`wattline data pin {self.data.path}`"
        try:
            recorded = read_profile(self.asking.folder / self.schema)
        except DocumentError as error:
            message = f"the profile {self.schema} is wrong: {error.problems[0].message}"
            yield self._said(
                "fail", message, f"mend it, or delete it and run {pin}", self.schema, error.problems[0].line
            )
            return
        except WattlineError:
            there = (self.asking.folder / self.schema).exists()
            message = f"the profile {self.schema} {'cannot be read' if there else 'is not there'}"
            yield self._said("fail", message, f"{pin} writes it; or take `schema` out", self.asking.document)
            return
        path = self.asking.folder / self.data.path
        if not path.exists():
            yield self._said("skip", f"{self.data.path} is not there, so it has no profile")
            return
        try:
            found = profile(path)
        except NotInstalledError as error:
            yield self._said("skip", error.message, error.hint or "")
            return
        except WattlineError as error:
            message = f"recorded as {recorded.form}; now {error.message}"
            yield self._said("fail", message, f"restore it, or pin what is there with {pin}", self.data.path)
            return
        yield from self._compare(recorded, found, pin)

    def _compare(self, recorded: DataProfile, found: DataProfile, pin: str) -> Iterator[Check]:
        drifts = list(islice(find_drift(recorded, found), _MOST_TOLD + 1))
        for drift in drifts[:_MOST_TOLD]:
            allow = f", allow it in {self.schema}: `{drift.allow}`" if drift.allow else ""
            fix = f"restore the data{allow}, or record what is there with {pin}"
            yield self._said(drift.outcome, drift.message, fix, self.data.path)
        if len(drifts) > _MOST_TOLD:
            yield self._said("warn", f"more than {_MOST_TOLD} differences; the rest is left out", pin)
        if not drifts:
            yield self._said("pass", f"{describe(found)}; as recorded")

    def _said(
        self, outcome: Outcome, message: str, fix: str = "", file: str | None = None, line: int = 0
    ) -> Check:
        return Check(
            check="data.schema",
            subject=self.data.name,
            outcome=outcome,
            message=message,
            fix=fix,
            file=file,
            line=line or None,
        )


def describe(found: DataProfile) -> str:
    """A profile in a line: form, counts, and how much of it was looked at."""
    about = "about " if found.sampled else ""
    text = f"{found.form}, {about}{_counted(found.rows, 'line' if found.form == 'text' else 'row')}"
    if found.form != "text":
        text += f" in {_counted(len(found.columns), 'column')}"
    if found.files > 1:
        text += f" of {found.files:,} files"
    if found.sampled is not None:
        text += f", sampled {format_bytes(found.sampled.bytes)} of {format_bytes(found.sampled.of)}"
    return text


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def find_drift(recorded: DataProfile, found: DataProfile) -> Iterator[Drift]:
    """Every difference beyond the recorded tolerances; the first explains the most."""
    if found.rows == 0 and recorded.rows > 0:
        yield Drift(f"recorded {recorded.rows:,} rows, found none: it is empty")
        return
    if found.form != recorded.form:
        yield Drift(f"recorded as {recorded.form}, found {found.form}")
        return
    if found.encoding != recorded.encoding:
        yield Drift(f"encoding: recorded {recorded.encoding}, found {found.encoding}")
    yield from _rows(recorded, found)
    if recorded.lines is not None and found.lines is not None:
        yield from _lines(recorded, found)
    if recorded.delimiter != found.delimiter:
        yield Drift(f"delimiter: recorded {recorded.delimiter}, found {found.delimiter}")
    elif recorded.header and not found.header and found.columns:
        yield Drift("header: recorded names of columns in the first line, found values")
    else:
        yield from column_drifts(recorded, found)


def _rows(recorded: DataProfile, found: DataProfile) -> Iterator[Drift]:
    unit = "lines" if recorded.form == "text" else "rows"
    allowed = recorded.tolerance.rows
    change = (found.rows - recorded.rows) / max(1, recorded.rows)
    if abs(change) > allowed:
        yield Drift(
            f"{unit}: recorded {recorded.rows:,}, found {found.rows:,} ({100 * change:+.0f} %); "
            f"{format_share(allowed)} either way is allowed",
            allow=allowance("rows", abs(change)),
        )
    if found.malformed > recorded.malformed + recorded.tolerance.nulls:
        yield Drift(
            f"malformed {unit}: recorded {format_share(recorded.malformed)}, "
            f"found {format_share(found.malformed)}"
        )


def _lines(recorded: DataProfile, found: DataProfile) -> Iterator[Drift]:
    assert recorded.lines is not None
    assert found.lines is not None
    before, now, allowed = recorded.lines, found.lines, recorded.tolerance.length
    if now.unreadable and not before.unreadable:
        yield Drift(
            f"recorded no control or replacement character (U+FFFD), found {now.unreadable:,}: "
            "was it decoded or cut wrongly?",
            outcome="warn" if recorded.sampled else "fail",
        )
    for what, was, is_ in (
        ("longest line", before.longest, now.longest),
        ("mean line", before.mean, now.mean),
    ):
        if is_ > was * (1 + allowed):
            yield Drift(
                f"{what}: recorded {was:,} characters, found {is_:,}",
                outcome="warn",
                allow=allowance("length", is_ / max(1, was) - 1),
            )
