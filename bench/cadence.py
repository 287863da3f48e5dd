"""What does `every: auto` lose against the best fixed interval, told the failure rate and learning it?

    python -m bench.cadence [--quick]

Time between failures is Weibull and begins anew at each failure; failures also strike saves. Lost is what
saves and work done again take, as a share of time. Restarts are left out: they are the same whatever the
interval, so they would only make ratios look better. The best fixed interval is searched on the very
failures on which the others are judged. What was learnt is frozen at the moment named and judged on all of
them; figures are means over many histories, in percent above the best fixed interval's loss.

Columns: Young's interval and ours at the true rate (that is Daly's), ours told the shape as well; after 5 and
20 failures with a prior four times too long and too short; ten failures after failures became four times as
frequent and as rare, and after saves became four times as dear and as cheap, each beside Daly's interval for
what was before; and one whole run that learns all the while, as a training script would drive it, from a
prior four times too long, against the best fixed interval on the same failures (a few percent of it is luck).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from wattline.checkpoint.cadence import AutoCadence, choose_interval_seconds
from wattline.units import SECONDS_PER_HOUR

SHAPES = (0.7, 1.0, 1.5)
MTBF_HOURS = (6.0, 48.0)
SAVE_SECONDS = (10.0, 60.0, 300.0)
OFF = (4.0, 0.25)
BEFORE, AFTER = 20, 10  # failures before and after a change
_HEAD = (
    ("", "shape, MTBF, save".rjust(20)),
    ("", "best fixed".rjust(17)),
    ("", "Young  told shape"),
    ("after 5     after 20", "   ×4    ÷4    ×4    ÷4"),
    ("rate ×4     rate ÷4", "  old  ours   old  ours"),
    ("save ×4     save ÷4", "  old  ours   old  ours"),
    ("", "whole"),
)
_SEED = 2006
_SEARCHED = np.exp(np.linspace(-1.0, 1.0, 161))  # around Young's interval

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of failures and saves: what strikes, and how gaps went in many histories."""

    shape: float
    mtbf_seconds: float
    save_seconds: float
    gaps: Floats  # sorted
    histories: Floats  # one per row
    whole: Floats  # gaps of one long run

    def lost(self, beliefs: Floats) -> Floats:
        """The share lost by cadences that believe this: mean time between failures, shape, save cost."""
        mtbf, shape, save = beliefs.T
        age, kept = np.zeros_like(mtbf), np.zeros_like(mtbf)
        while age.min() < self.gaps[-1]:
            trained = choose_interval_seconds(save, mtbf, shape=shape, age_seconds=age)
            age += trained + self.save_seconds
            kept += trained * (1.0 - np.searchsorted(self.gaps, age) / len(self.gaps))
        return np.asarray(1.0 - kept / self.gaps.mean())

    @property
    def young_seconds(self) -> float:
        return math.sqrt(2.0 * self.save_seconds * self.mtbf_seconds)

    def lost_at(self, interval_seconds: float, gaps: Floats) -> float:
        """The share lost by a fixed interval."""
        saves = (gaps // (interval_seconds + self.save_seconds)).mean()
        return float(1.0 - saves * interval_seconds / gaps.mean())

    def best_fixed(self) -> tuple[float, float]:
        """The least share that a fixed interval loses, and the interval."""
        tried = (self.young_seconds * _SEARCHED).tolist()
        return min(
            (self.lost_at(interval_seconds, self.gaps), interval_seconds) for interval_seconds in tried
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was lost in one case; `above` are shares above the best fixed interval's loss, by column."""

    case: Case
    best_seconds: float
    best_lost: float
    above: dict[str, float]

    def of(self, *columns: str) -> list[float]:
        return [self.above[column] for column in columns]


def cases(
    *, failures: int, histories: int, whole: int, saves: Sequence[float] = SAVE_SECONDS
) -> Iterator[Case]:
    """All of them, with the same chances for every mean time and save cost."""
    for shape, hours, save_seconds in product(SHAPES, MTBF_HOURS, saves):
        chance = np.random.default_rng(_SEED)
        scale = hours * SECONDS_PER_HOUR / math.gamma(1.0 + 1.0 / shape)
        yield Case(
            shape=shape,
            mtbf_seconds=hours * SECONDS_PER_HOUR,
            save_seconds=save_seconds,
            gaps=np.sort(scale * chance.weibull(shape, failures)),
            histories=scale * chance.weibull(shape, (histories, BEFORE + AFTER)),
            whole=scale * chance.weibull(shape, whole),
        )


def judge(case: Case) -> Row:
    """Everything in the table for one case."""
    best_lost, best_seconds = case.best_fixed()
    beliefs = beliefs_of(case)
    ends = np.cumsum([len(group) for group in beliefs.values()])
    lost = np.split(case.lost(np.vstack(list(beliefs.values()))), ends[:-1])
    above = {name: float(one.mean()) / best_lost - 1.0 for name, one in zip(beliefs, lost, strict=True)}
    above["Young"] = case.lost_at(case.young_seconds, case.gaps) / best_lost - 1.0
    above["whole"] = lost_in_whole(case) / case.lost_at(best_seconds, case.whole) - 1.0
    return Row(case=case, best_seconds=best_seconds, best_lost=best_lost, above=above)


def beliefs_of(case: Case) -> dict[str, Floats]:
    """What is believed in each column, a row for each history. `off` is what was, against what is."""
    mtbf, save = case.mtbf_seconds, case.save_seconds
    found = {"told": np.array([[mtbf, 1.0, save]]), "shape": np.array([[mtbf, case.shape, save]])}
    for off in OFF:
        for count in (5, BEFORE):
            found[f"{count}:{off:g}"] = believed(case, learn(case.histories[:, :count], off * mtbf))
        then = np.repeat((off, 1.0), (BEFORE, AFTER))
        found[f"rate:{off:g}"] = believed(case, learn(case.histories * then, off * mtbf))
        found[f"rate:{off:g}:old"] = np.array([[off * mtbf, 1.0, save]])
        cadences = learn_saves(case, off)
        found[f"save:{off:g}"] = believed(case, cadences)
        found[f"save:{off:g}"][:, 2] = [cadence.save_seconds for cadence in cadences]
        found[f"save:{off:g}:old"] = np.array([[mtbf, 1.0, off * save]])
    return found


def believed(case: Case, cadences: Sequence[AutoCadence]) -> Floats:
    """What cadences think of failures, with the true save cost."""
    return np.array([[one.mtbf_seconds, one.shape, case.save_seconds] for one in cadences])


def learn(histories: Floats, prior_seconds: float) -> list[AutoCadence]:
    """Cadences that saw these failures."""
    cadences = []
    for gaps in histories:
        cadence = AutoCadence(prior_seconds=prior_seconds)
        for gap in gaps:
            cadence.ran(float(gap))
            cadence.failed()
        cadences.append(cadence)
    return cadences


def learn_saves(case: Case, off: float) -> list[AutoCadence]:
    """Cadences that saw saves change. Saves vary, and one in fifty takes five times as long."""
    chance = np.random.default_rng(_SEED)
    cadences = []
    for gaps in case.histories:
        cadence = AutoCadence(prior_seconds=case.mtbf_seconds)
        for number, gap in enumerate(gaps):
            cost = case.save_seconds * (off if number < BEFORE else 1.0)
            for _ in range(min(int(gap / (cadence.interval_seconds + cost)), 5)):
                slow = 5.0 if chance.random() < 0.02 else 1.0
                cadence.saved(cost * slow * chance.lognormal(0.0, 0.2))
            cadence.ran(float(gap))
            cadence.failed()
        cadences.append(cadence)
    return cadences


def lost_in_whole(case: Case) -> float:
    """One run from beginning to end, as a training script drives it."""
    cadence, kept = AutoCadence(prior_seconds=OFF[0] * case.mtbf_seconds), 0.0
    for gap in map(float, case.whole):
        age = 0.0
        while (then := age + (trained := cadence.interval_seconds) + case.save_seconds) < gap:
            cadence.saved(case.save_seconds)
            cadence.ran(then - age)
            kept, age = kept + trained, then
        cadence.ran(gap - age)
        cadence.failed()
    return 1.0 - kept / float(case.whole.sum())


def bars(rows: Sequence[Row]) -> Iterator[tuple[str, float, list[float]]]:
    """What is promised, by how much it may be above the best, and by how much it is in each case."""
    for name, most, columns in (
        ("told the rate", 0.02, ("told",)),
        ("after 5 failures, prior off by 4", 0.10, ("5:4", "5:0.25")),
        ("after 20 failures, prior off by 4", 0.05, ("20:4", "20:0.25")),
        ("10 failures after the rate changed by 4", 0.10, ("rate:4", "rate:0.25")),
        ("10 failures after saves changed by 4", 0.10, ("save:4", "save:0.25")),
    ):
        yield name, most, [share for row in rows for share in row.of(*columns)]


def print_row(row: Row) -> None:
    groups = (
        ("Young", "told", "shape"),
        ("5:4", "5:0.25", "20:4", "20:0.25"),
        ("rate:4:old", "rate:4", "rate:0.25:old", "rate:0.25"),
        ("save:0.25:old", "save:0.25", "save:4:old", "save:4"),
        ("whole",),
    )
    cells = [
        f"{row.case.shape:5g} {row.case.mtbf_seconds / SECONDS_PER_HOUR:4g} h {row.case.save_seconds:5g} s",
        f"{row.best_seconds / 60:5.1f} min {100 * row.best_lost:5.2f} %",
        *(" ".join(f"{100 * share:+5.1f}" for share in row.of(*columns)) for columns in groups),
    ]
    print(" | ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer histories")
    quick = parser.parse_args().quick
    began = time.process_time()
    print(" | ".join(above.center(len(below)) for above, below in _HEAD))
    print(" | ".join(below for _, below in _HEAD))
    rows = []
    for case in cases(failures=20_000, histories=20 if quick else 200, whole=30 if quick else 500):
        rows.append(judge(case))
        print_row(rows[-1])
    for name, most, found in bars(rows):
        worst, mean = max(found), sum(found) / len(found)
        met = "met" if worst <= most else "missed"
        print(f"{name}: at most {most:+.0%}; worst {worst:+.1%}, mean {mean:+.1%}: {met}")
    print(f"whole runs: mean {sum(row.above['whole'] for row in rows) / len(rows):+.1%}")
    print(f"{time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main()
