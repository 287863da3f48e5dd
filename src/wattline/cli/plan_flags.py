"""Which change does a flag of `twin plan` ask for? Each flag is an option of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from wattline.cli.printing import plain
from wattline.errors import UsageError
from wattline.spec.plan import GROWING, PlanChange, PlanOption
from wattline.spec.problems import say_findings

_TIMES = re.compile(r"(?P<name>[^*@]+)\*(?P<number>[0-9.eE+-]+)(?:@(?P<loop>.+))?")
_BY = re.compile(r"(?P<name>.+):(?P<change>[^:]+)")


def options_of(
    written: Mapping[str, Sequence[str] | None], *, grow: bool
) -> tuple[tuple[str, PlanOption], ...]:
    """All that were asked for, each with its flag."""
    if grow and not written["--add-racks"]:
        raise UsageError("--grow builds out what added racks hang on", hint="name them with --add-racks")
    return tuple(
        (flag, option_of(flag, text, grow=grow)) for flag, texts in written.items() for text in texts or ()
    )


def option_of(flag: str, written: str, *, grow: bool) -> PlanOption:
    """`--uplink ash-lul*2` as an option that goes by what was written."""
    usage, read = _FLAGS[flag]
    fields = read(written.strip())
    if fields is None:
        raise UsageError(f"{flag} {plain(written)!r} cannot be read", hint=f"write {flag} '{usage}'")
    if grow and "copies" in fields:
        fields["grow"] = GROWING
    try:
        change = PlanChange.model_validate(fields)
    except ValidationError as error:
        raise UsageError(
            f"{flag} {plain(written)!r}: {say_findings(error)}", hint=f"write {flag} '{usage}'"
        ) from None
    # A flag's text is no name that a document could have: built without asking.
    return PlanOption.model_construct(name=written.strip(), changes=(change,), cost=None)


def _copies(written: str) -> dict[str, Any] | None:
    match = _TIMES.fullmatch(written)
    if match is None or not match["number"].isdecimal():
        return None
    return {"rack": match["name"], "copies": int(match["number"]), "on_loop": match["loop"]}


def _factor(subject: str, effect: str) -> Callable[[str], dict[str, Any] | None]:
    def read(written: str) -> dict[str, Any] | None:
        match = _TIMES.fullmatch(written)
        if match is None or match["loop"] is not None:
            return None
        try:
            return {subject: match["name"], effect: float(match["number"])}
        except ValueError:
            return None

    return read


def _warmer(written: str) -> dict[str, Any] | None:
    match = _BY.fullmatch(written)
    return None if match is None else {"loop": match["name"], "warmer_by": match["change"]}


_FLAGS: dict[str, tuple[str, Callable[[str], dict[str, Any] | None]]] = {
    "--add-racks": ("SITE/RACK*20 or SITE/RACK*20@LOOP", _copies),
    "--supply-temperature": ("SITE/LOOP:+2K", _warmer),
    "--loop-capacity": ("SITE/LOOP*1.2", _factor("loop", "capacity_factor")),
    "--feed": ("SITE/FEED*1.5", _factor("supply", "rating_factor")),
    "--cap": ("SITE/RACK*1.1", _factor("rack", "cap_factor")),
    "--uplink": ("LINK*2", _factor("link", "bandwidth_factor")),
}
