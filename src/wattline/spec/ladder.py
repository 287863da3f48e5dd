"""What a job gives up under pressure, in the order its owner wrote."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from wattline import units
from wattline.enums import plain_members
from wattline.spec.expression import compile_expression
from wattline.spec.quantities import Name

# What a rung's `when` may speak of; each is a double.
PRESSURE_VARIABLES = (
    "power_headroom",
    "cooling_headroom",
    "link_headroom",
    "minutes_to_throttle",
    "hottest_celsius",
)


@plain_members
class RungKind(StrEnum):
    """The ways a job can give way, mildest first."""

    CAP_POWER = "cap_power"
    SHRINK_BATCH = "shrink_batch"
    PAUSE = "pause"
    MIGRATE = "migrate"
    STOP = "stop"


class Rung(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a ladder. `amount` is a share of one, or seconds for a pause."""

    kind: RungKind
    amount: float = 0.0
    to: str = "any"  # a site, for migrate
    when: str = ""  # an expression over PRESSURE_VARIABLES; empty: always


_AMOUNTS = {
    RungKind.CAP_POWER: units.FRACTION,
    RungKind.SHRINK_BATCH: units.FRACTION,
    RungKind.PAUSE: units.DURATION,
}


def _amount_of(kind: RungKind) -> Callable[[object], object]:
    """Check what is written, and keep it as it is written."""

    def check(value: object) -> object:
        if value is not None and _AMOUNTS[kind].parse(value) == 0:
            raise ValueError(f"{kind.value} of zero is no rung; use pause or stop")
        return value

    return check


def _check_when(when: str) -> str:
    if when:
        compile_expression(when, PRESSURE_VARIABLES)
    return when


class RungDocument(BaseModel):
    """A rung as people write it: `{cap_power: 70%, when: power_headroom < 15%}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cap_power: Annotated[Any, AfterValidator(_amount_of(RungKind.CAP_POWER))] = None
    shrink_batch: Annotated[Any, AfterValidator(_amount_of(RungKind.SHRINK_BATCH))] = None
    pause: Annotated[Any, AfterValidator(_amount_of(RungKind.PAUSE))] = None
    migrate: Name | None = None  # a site, or any
    stop: Literal[True] | None = None
    when: Annotated[str, AfterValidator(_check_when)] = ""

    @model_validator(mode="after")
    def _one_kind(self) -> RungDocument:
        self.rung()
        return self

    def rung(self) -> Rung:
        named = [kind for kind in RungKind if getattr(self, kind.value) is not None]
        if len(named) != 1:
            raise ValueError(f"a rung names exactly one of {', '.join(RungKind)}")
        (kind,) = named
        amount = _AMOUNTS[kind].parse(getattr(self, kind.value)) if kind in _AMOUNTS else 0.0
        return Rung(kind=kind, amount=amount, to=self.migrate or "any", when=self.when)


Ladder = Annotated[tuple[RungDocument, ...], Field(max_length=16)]
