"""Cadence: how long after a checkpoint should the next one be taken?

Saving often costs saves, saving seldom costs work done again after a failure. Young (1974) balances them at
√(2 · save · time between failures), Daly (2006) adds the terms that count when saves are dear. Time to
restart is lost either way and moves nothing: it is told, not weighed.

What is learnt is the mean time between failures, and whether they come early or late after one another:

- The prior counts as one failure. At every failure all older evidence loses an eighth of its weight: so
  little that a steady rate is found, and so much that a new one is found ten failures after it came.
- A gap that is still open counts once it is longer than the mean: it would raise it even if it ended now.
- The gaps' spread gives the shape of a Weibull law, held near 1 (no memory) until many gaps speak. Below 1,
  failures follow each other closely, so that saves begin dense and grow rarer; above 1 the other way round.
- What a save costs is the median of the last few: one slow disk is no trend, three are.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable
from statistics import median

import numpy as np
import numpy.typing as npt

from wattline.errors import UnavailableError
from wattline.units import format_seconds, format_share

Seconds = float | npt.NDArray[np.float64]

DEFAULT_PRIOR_SECONDS = 24 * 3600.0
UNMEASURED_SAVE_SECONDS = 5.0  # until the first save has been timed
_LEAST_COST_SECONDS, _LEAST_SECONDS, _LEAST_PRIOR_SECONDS, _MOST_SECONDS = 1e-3, 1.0, 60.0, 1e10
_KEPT_WEIGHT = 7 / 8  # of older evidence, at each failure
_MAX_GAPS = 32  # what is older has less than a fiftieth of its weight
_MAX_RECENT = 5
_MAX_TEXT = 1000  # characters
_MAX_VALUES = {
    "prior": 1,
    "price": 1,
    "ran": 1,
    "gaps": _MAX_GAPS,
    "saves": _MAX_RECENT,
    "behind": _MAX_RECENT,
    "restarts": _MAX_RECENT,
}
# Logarithms of times without memory have this variance; it is believed as much as this many gaps.
_LOG_VARIANCE, _LOG_VARIANCE_WEIGHT = math.pi**2 / 6, 10.0
_SHAPES = (0.5, 2.0)
_MOST_LEAN = 1.5  # how far a learnt shape may move the interval, either way
_TOLD_LEAN = 0.1  # less than this is not worth a clause
_NUMBER = re.compile(r"[0-9]{1,16}(?:\.[0-9]{1,16})?(?:e[+-]?[0-9]{1,2})?")


def choose_interval_seconds(
    save_seconds: Seconds, mtbf_seconds: Seconds, *, shape: Seconds = 1.0, age_seconds: Seconds = 0.0
) -> npt.NDArray[np.float64]:
    """The training between two saves that loses least, at this age of the run. Also for many at once."""
    steady = _daly(save_seconds, mtbf_seconds)
    scale = mtbf_seconds / _gamma(1.0 + 1.0 / np.asarray(shape, dtype=float))
    seconds = steady
    # The rate that counts is the one until the next save is done, which depends on the answer. Each turn at
    # least halves what is missing, as the answer goes with the root of the rate.
    for _ in range(5):
        window = seconds + save_seconds
        hazard = ((age_seconds + window) / scale) ** shape - (age_seconds / scale) ** shape
        seconds = _daly(save_seconds, window / hazard)
    return np.maximum(np.clip(seconds, steady / _MOST_LEAN, steady * _MOST_LEAN), save_seconds)


def _gamma(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.reshape([math.gamma(value) for value in values.flat], values.shape)


def _daly(save_seconds: Seconds, mtbf_seconds: Seconds) -> npt.NDArray[np.float64]:
    ratio = np.minimum(save_seconds / (2.0 * np.asarray(mtbf_seconds, dtype=float)), 1.0)
    series = 2.0 * mtbf_seconds * np.sqrt(ratio) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - save_seconds
    return np.where(ratio < 1.0, series, mtbf_seconds)


def price_in_seconds(save_usd: float, *, gpu_second_usd: float, gpus: int) -> float:
    """How much training the storage and requests of one save would have paid for."""
    return save_usd / (gpu_second_usd * gpus)


class AutoCadence:
    """What is known of one run's saves and failures, and the interval that follows.

    Only what loses work is a failure: a preemption that leaves time to save is none.
    """

    def __init__(self, *, prior_seconds: float = DEFAULT_PRIOR_SECONDS, price_seconds: float = 0.0) -> None:
        self.prior_seconds = _bounded("prior", prior_seconds, least=_LEAST_PRIOR_SECONDS)
        self.price_seconds = _bounded("price", price_seconds)
        self._open_seconds = 0.0
        self._gaps: deque[float] = deque(maxlen=_MAX_GAPS)
        self._saves: deque[float] = deque(maxlen=_MAX_RECENT)
        self._behind: deque[float] = deque(maxlen=_MAX_RECENT)
        self._restarts: deque[float] = deque(maxlen=_MAX_RECENT)

    def ran(self, seconds: float) -> None:
        """The run went on for so long, since this was last told."""
        self._open_seconds = min(self._open_seconds + _bounded("ran", seconds), _MOST_SECONDS)

    def failed(self) -> None:
        """The run ended without saving, now."""
        self._gaps.append(self._open_seconds)
        self._open_seconds = 0.0

    def restarted(self, seconds: float) -> None:
        """It took so long to train again."""
        self._restarts.append(_bounded("restarts", seconds))

    def saved(self, stopped_seconds: float, *, behind_seconds: float = 0.0, slowdown: float = 0.0) -> None:
        """Training stood still for a save, which was then written behind it and slowed it by so much."""
        slowed_seconds = _bounded("slowdown", slowdown, most=1.0) * _bounded("behind", behind_seconds)
        self._saves.append(_bounded("saves", _bounded("stopped", stopped_seconds) + slowed_seconds))
        self._behind.append(behind_seconds)

    @property
    def save_seconds(self) -> float:
        """What a save costs training."""
        return median(self._saves) if self._saves else UNMEASURED_SAVE_SECONDS

    @property
    def mtbf_seconds(self) -> float:
        """Mean time between failures."""
        failures, ran = 1.0, self.prior_seconds
        for gap in self._gaps:
            failures, ran = failures * _KEPT_WEIGHT + 1.0, ran * _KEPT_WEIGHT + gap
        if_ended_now = (ran * _KEPT_WEIGHT + self._open_seconds) / (failures * _KEPT_WEIGHT + 1.0)
        return max(ran / failures, if_ended_now, _LEAST_SECONDS)

    @property
    def shape(self) -> float:
        """Below 1, failures come soon after failures; above 1, they come as if by wear."""
        if len(self._gaps) < 2:
            return 1.0
        logs = np.log(np.maximum(self._gaps, _LEAST_SECONDS))
        weights = _KEPT_WEIGHT ** np.arange(len(logs))[::-1]
        weight = float(weights.sum())
        spread = float(weights @ (logs - np.average(logs, weights=weights)) ** 2)
        variance = (_LOG_VARIANCE_WEIGHT * _LOG_VARIANCE + spread) / (_LOG_VARIANCE_WEIGHT + weight - 1.0)
        return min(max(math.sqrt(_LOG_VARIANCE / variance), _SHAPES[0]), _SHAPES[1])

    @property
    def interval_seconds(self) -> float:
        """How long to train before the next save begins: to be asked after each save, not at each step."""
        return self._interval_seconds(self.shape)

    @property
    def lost_fraction(self) -> float:
        """The share of time that saves, work done again and restarts take, on average."""
        mtbf, interval = self.mtbf_seconds, self._interval_seconds(1.0)
        done = interval / math.expm1(min((interval + self.save_seconds) / mtbf, 700.0))
        restart = median(self._restarts) if self._restarts else 0.0
        return 1.0 - max(done - self._behind_seconds, 0.0) / (mtbf + restart)

    def explain(self) -> str:
        """The interval and its reasons in one sentence."""
        chosen, steady = self.interval_seconds, self._interval_seconds(1.0)
        cost = f"a save {'costs' if self._saves else 'is taken to cost'} {format_seconds(self.save_seconds)}"
        if self.price_seconds:
            cost += f" and a price worth {format_seconds(self.price_seconds)}"
        if chosen <= self._behind_seconds:
            cost += f" and takes {format_seconds(self._behind_seconds)} to be written"
        if self._restarts:
            cost += f", a restart {format_seconds(median(self._restarts))}"
        last = "last " if len(self._gaps) == _MAX_GAPS else ""
        seen = f"{last}{len(self._gaps)} seen in {format_seconds(sum(self._gaps, self._open_seconds))}"
        mtbf, prior = format_seconds(self.mtbf_seconds), format_seconds(self.prior_seconds)
        sentence = (
            f"every {format_seconds(chosen)}: {cost}, a failure comes every {mtbf} ({seen}, prior {prior}), "
            f"so {format_share(self.lost_fraction)} is lost"
        )
        if abs(chosen - steady) > _TOLD_LEAN * steady:
            often = "often" if chosen < steady else "seldom"
            sentence += (
                f"; by the mean alone every {format_seconds(steady)}, "
                f"but failures {often} come {format_seconds(self._open_seconds)} after another"
            )
        return sentence

    def to_text(self) -> str:
        """All that is known, short enough for an environment variable."""
        fields = {
            "prior": [self.prior_seconds],
            "price": [self.price_seconds],
            "ran": [self._open_seconds],
            "gaps": self._gaps,
            "saves": self._saves,
            "behind": self._behind,
            "restarts": self._restarts,
        }
        written = ",".join(f"{name}={_written(values)}" for name, values in fields.items() if values)
        return f"auto:{written}"

    @classmethod
    def from_text(cls, text: str) -> AutoCadence:
        """Read what `to_text` wrote, or just "auto"; anything else is refused."""
        fields = _fields(text)
        [prior_seconds] = fields.get("prior", [DEFAULT_PRIOR_SECONDS])
        [price_seconds] = fields.get("price", [0.0])
        cadence = cls(prior_seconds=prior_seconds, price_seconds=price_seconds)
        [cadence._open_seconds] = fields.get("ran", [0.0])
        cadence._gaps.extend(fields.get("gaps", ()))
        cadence._saves.extend(fields.get("saves", ()))
        cadence._behind.extend(fields.get("behind", ()))
        cadence._restarts.extend(fields.get("restarts", ()))
        return cadence

    def _interval_seconds(self, shape: float) -> float:
        cost_seconds = max(self.save_seconds + self.price_seconds, _LEAST_COST_SECONDS)
        chosen = choose_interval_seconds(
            cost_seconds, self.mtbf_seconds, shape=shape, age_seconds=self._open_seconds
        )
        # A save that begins while another is written would only be skipped.
        return max(float(chosen), self._behind_seconds, _LEAST_SECONDS)

    @property
    def _behind_seconds(self) -> float:
        return median(self._behind) if self._behind else 0.0


def _bounded(name: str, value: float, *, least: float = 0.0, most: float = _MOST_SECONDS) -> float:
    if not least <= value <= most:  # NaN fails it too
        raise UnavailableError(
            f"checkpoint cadence: {name} is {value:g}, not from {least:g} to {most:g}",
            hint="times are in seconds, by a clock that never goes back",
        )
    return float(value)


def _written(values: Iterable[float]) -> str:
    return "/".join(f"{round(value, 6):.6g}" for value in values)


def _fields(text: str) -> dict[str, list[float]]:
    """The fields of a text: each known and given once, with no more numbers than it may have, all bounded."""
    if len(text) > _MAX_TEXT:
        raise _refusal(f"has {len(text)} characters, more than {_MAX_TEXT}")
    word, _, rest = text.partition(":")
    if word != "auto":
        raise _refusal(f"begins with {word[:20]!r}")
    fields: dict[str, list[float]] = {}
    for field in rest.split(",") if rest else ():
        name, _, written = field.partition("=")
        numbers = written.split("/")
        if name not in _MAX_VALUES:
            raise _refusal(f"has a field {name[:20]!r}; known are {', '.join(_MAX_VALUES)}")
        if name in fields:
            raise _refusal(f"has {name} twice")
        if len(numbers) > _MAX_VALUES[name]:
            raise _refusal(f"has {len(numbers)} numbers in {name}, more than {_MAX_VALUES[name]}")
        if wrong := [number for number in numbers if not _NUMBER.fullmatch(number)]:
            raise _refusal(f"has {wrong[0][:20]!r} for a number in {name}")
        fields[name] = [_bounded(name, float(number)) for number in numbers]
    return fields


def _refusal(what: str) -> UnavailableError:
    return UnavailableError(
        f"checkpoint cadence: the text {what}",
        hint="write auto, or what a cadence wrote, such as auto:prior=86400",
    )
