"""Response: what does a temperature have to be, if it follows what drives it with one time constant?

A die above its coolant and a coolant above its supply obey one equation: τ dT/dt = base + gain·drive - T.
Between moments at which a meter spoke the solution is exact (no Euler step), so readings may be sparse and
uneven. Only what is read at the moments is assumed in between: temperatures move on straight lines, and watts
either stay as last said, move on a line, or were an average up to the reading. Meters are of all three kinds,
so all three are tried and the data choose.

Flow changes both the gain and the time constant. Time is therefore stretched (`pace`): on the stretched axis
the time constant is a constant again, and nothing else has to know about flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from wattline.twin.calibrate.series import Array, Mask, Series, Whole

_FEWEST_IN_SEGMENT = 3


class Hold(Enum):
    """What a drive does between two of its readings."""

    AS_LAST_SAID = "as last said"
    STRAIGHT = "straight"
    AVERAGED = "averaged up to the reading"


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """One temperature and what drives it, on the moments at which any of them was read."""

    span_seconds: Array  # since the moment before, stretched
    base: Array
    drives: dict[Hold, tuple[Array, Array]]  # at the beginning and at the end of the span before each moment
    is_start: Mask  # begins anew: a meter was away, or there was no flow
    seen: Whole  # moments at which the temperature itself was read, segment by segment
    seen_celsius: Array
    first_of_segment: Whole  # positions in `seen`
    since_start_seconds: Array  # of what was seen

    @property
    def segments(self) -> int:
        return len(self.first_of_segment)

    def spread_to_seen(self, per_segment: Array) -> Array:
        """One number for each segment, repeated for each reading in it."""
        return np.repeat(per_segment, np.diff(np.append(self.first_of_segment, len(self.seen))))

    def follow(self, time_constant_seconds: float, hold: Hold) -> tuple[Array, Array]:
        """Base and drive as something that lags them by this time constant shows them, where it was seen."""
        spans = self.span_seconds / time_constant_seconds
        keep = np.exp(-spans)
        lag = np.ones_like(spans)
        np.divide(-np.expm1(-spans), spans, out=lag, where=spans > 0.0)
        begin, end = self.drives[hold]
        before = np.append(self.base[:1], self.base[:-1])
        added = np.stack([_taken_up(before, self.base, keep, lag), _taken_up(begin, end, keep, lag)])
        keep = np.where(self.is_start, 0.0, keep)
        added = np.where(self.is_start, np.stack([self.base, end]), added)
        base, drive = _accumulate(keep, added)[:, self.seen]
        return base, drive


def build_response(
    celsius: Series, base: Series, drive: Series, *, pace: Series | None, scale: float
) -> Response | None:
    """Line up the meters; None where they never speak together.

    `pace` is by how much faster than nominal everything goes at each moment (0: not at all, so not used).
    """
    sources = [celsius, base, drive] + ([pace] if pace is not None else [])
    moments = np.unique(np.concatenate([source.at for source in sources]))
    begin, end = max(source.at[0] for source in sources), min(source.at[-1] for source in sources)
    moments = moments[(moments >= begin) & (moments <= end)]
    if len(moments) < _FEWEST_IN_SEGMENT:
        return None
    ended, began = moments, np.append(moments[:1], moments[:-1])
    broken = np.zeros(len(moments), dtype=np.bool_)
    for source in sources:
        broken |= source.silent(began, ended)
    paces = np.ones(len(moments)) if pace is None else pace.last(began)
    broken |= paces <= 0.0
    broken[0] = True
    paces = np.where(paces > 0.0, paces, 1.0)
    spans = np.where(broken, 0.0, (ended - began) * scale * paces)
    # A drive is what the base ends above itself by; a slower pace leaves it that much farther above.
    straight, last = drive.between(moments), drive.last(began)
    return _with_seen(
        Response(
            span_seconds=spans,
            base=base.between(moments),
            drives={
                Hold.AS_LAST_SAID: (last / paces, last / paces),
                Hold.STRAIGHT: (np.append(straight[:1], straight[:-1]) / paces, straight / paces),
                Hold.AVERAGED: (drive.next(ended) / paces, drive.next(ended) / paces),
            },
            is_start=broken,
            seen=np.searchsorted(moments, celsius.at[(celsius.at >= begin) & (celsius.at <= end)]),
            seen_celsius=celsius.values[(celsius.at >= begin) & (celsius.at <= end)],
            first_of_segment=np.zeros(0, dtype=np.int64),
            since_start_seconds=np.zeros(0),
        )
    )


def _with_seen(response: Response) -> Response | None:
    """Keep segments with enough readings to say more than where they began."""
    segment = np.cumsum(response.is_start)
    clock = np.cumsum(response.span_seconds)
    start = clock[np.flatnonzero(response.is_start)][segment - 1]
    counted = np.bincount(segment[response.seen], minlength=segment[-1] + 1)
    enough = counted[segment[response.seen]] >= _FEWEST_IN_SEGMENT
    seen, celsius = response.seen[enough], response.seen_celsius[enough]
    if len(seen) == 0:
        return None
    return Response(
        span_seconds=response.span_seconds,
        base=response.base,
        drives=response.drives,
        is_start=response.is_start,
        seen=seen,
        seen_celsius=celsius,
        first_of_segment=np.flatnonzero(np.append(True, np.diff(segment[seen]) > 0)),
        since_start_seconds=(clock - start)[seen],
    )


def _taken_up(begin: Array, end: Array, keep: Array, lag: Array) -> Array:
    """What a lag takes up of an input that moves on a line over one span."""
    return begin * (1.0 - keep) + (end - begin) * (1.0 - lag)


def _accumulate(keep: Array, added: Array) -> Array:
    """x[i] = keep[i]·x[i-1] + added[i] for all i, by doubling: no loop over readings, and no overflow."""
    keep, total = keep.copy(), added.copy()
    reach = 1
    while reach < len(keep) and keep.any():
        total[:, reach:] += keep[reach:] * total[:, :-reach]
        keep[reach:] *= keep[:-reach]
        keep[:reach] = 0.0
        reach *= 2
    return total
