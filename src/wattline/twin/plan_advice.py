"""What would one say of an option, and which comes first? In words, and only as far as seeds agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wattline.twin.plan_report import OptionReport, Weighed, weigh_figure
from wattline.twin.wording import say_energy, say_gpu_hours
from wattline.units import format_seconds

Columns = Mapping[str, Sequence[float | None]]  # of each figure, seed by seed


def say_option(
    figures: Mapping[str, Weighed],
    per_usd: float | None,
    per_kwh: float | None,
    seeds: int,
    horizon: float,
    unknown_cooling: Sequence[str] = (),
    crowding: str = "",
) -> str:
    """What it buys within the horizon, in seconds; at some sites nobody knows what cooling takes then, and
    racks that crowd others out are why less is done."""
    gain, energy, time = figures["useful_gpu_hours"], figures["energy_kwh"], format_seconds(horizon)
    if gain.difference is None:
        return "useful GPU-hours are not known"
    hours = say_gpu_hours(abs(gain.difference))
    if gain.low is None or gain.high is None:
        more = "more" if gain.difference >= 0 else "fewer"
        return f"{hours} {more} useful GPU-hours with one seed; nothing says whether another agrees"
    if not gain.is_clear and not energy.is_clear:
        if not (_is_same(gain) and _is_same(energy)):
            return f"cannot tell apart with {_seeds(seeds)}"
        if unknown_cooling:
            where = " and ".join(unknown_cooling)
            return f"gets the same done, with any of {seeds} seeds; what cooling {where} takes is not known"
        return f"changes nothing, with any of {seeds} seeds"
    half = say_gpu_hours((gain.high - gain.low) / 2)
    if not gain.is_clear:
        done = "gets the same done" if _is_same(gain) else "useful GPU-hours cannot be told apart"
        return f"{done} with {_seeds(seeds)}; {_say_energy(energy)} in {time}"
    if not gain.gains:
        why = f"; {crowding}" if crowding else ""
        return f"loses {hours} ± {half} useful GPU-hours in {time}; {_say_energy(energy)}{why}"
    prices = [f"{1 / per_usd:,.3g} USD"] if per_usd is not None else []
    prices += [f"{1 / per_kwh:,.3g} kWh"] if per_kwh is not None else []
    each = f", each for {' and '.join(prices)}" if prices else f"; {_say_energy(energy)}"
    return f"buys {hours} ± {half} useful GPU-hours in {time}{each}"


def _is_same(figure: Weighed) -> bool:
    """With every seed, not only on average."""
    return figure.low == figure.high == figure.difference == 0.0


def _say_energy(energy: Weighed) -> str:
    if not energy.is_clear or energy.difference is None or energy.low is None or energy.high is None:
        return "energy cannot be told apart"
    amount, half = say_energy(abs(energy.difference)), say_energy((energy.high - energy.low) / 2)
    return f"{'takes' if energy.difference > 0 else 'saves'} {amount} ± {half}"


def recommend(options: Sequence[OptionReport], base: Columns, columns: Sequence[Columns]) -> str:
    """Which comes first by its dollars: only among what is clear, at a price that somebody gave."""
    seeds = len(base["usd"])
    free = [at for at, option in enumerate(options) if option.usd_per_year is not None and _is_free(option)]
    gaining = [at for at, option in enumerate(options) if option.figures["useful_gpu_hours"].gains]
    priced = [at for at in gaining if options[at].usd_per_year is not None and at not in free]
    ranked = _rank(priced, options, base, columns) if priced else ""
    if free:
        names = " and ".join(options[at].name for at in free)
        then = f"; then {ranked.removeprefix('first ')}" if ranked else ""
        return f"first {names}: costs no more and gets no less done, as far as can be told{then}"
    if ranked:
        return ranked
    if gaining:
        names = " and ".join(options[at].name for at in gaining)
        return f"{names}: more useful GPU-hours, but no cost was given to weigh them against"
    gains = [option.figures["useful_gpu_hours"] for option in options]
    if all(gain.is_clear or _is_same(gain) for gain in gains):
        return "no option buys useful GPU-hours"
    return f"cannot tell apart with {_seeds(seeds)}"


def _is_free(option: OptionReport) -> bool:
    """More for no more dollars, or no less for fewer; each only where it is clear."""
    gain, spent = option.figures["useful_gpu_hours"], option.figures["usd"]
    return (gain.gains and not spent.gains) or (spent.loses and not gain.loses)


def _rank(
    among: Sequence[int], options: Sequence[OptionReport], base: Columns, columns: Sequence[Columns]
) -> str:
    ranked = sorted(among, key=lambda at: -(options[at].gained_gpu_hours_per_usd or 0.0))
    best = options[ranked[0]]
    if len(ranked) > 1:
        ahead = weigh_figure(_per_usd(base, columns[ranked[1]]), _per_usd(base, columns[ranked[0]]))
        if not ahead.gains:
            names, seeds = f"{best.name} and {options[ranked[1]].name}", _seeds(len(base["usd"]))
            return f"{names} cannot be told apart by dollars with {seeds}"
    usd = 1 / (best.gained_gpu_hours_per_usd or 1.0)
    return f"first {best.name}: {usd:,.3g} USD for each useful GPU-hour more"


def _per_usd(base: Columns, columns: Columns) -> list[float | None]:
    """Gained for each dollar more, seed by seed; None where nothing more was spent."""
    gained = _more(base["useful_gpu_hours"], columns["useful_gpu_hours"])
    pairs = zip(gained, _more(base["usd"], columns["usd"]), strict=True)
    return [
        hours / usd if hours is not None and usd is not None and usd > 0 else None for hours, usd in pairs
    ]


def _more(base: Sequence[float | None], values: Sequence[float | None]) -> list[float | None]:
    pairs = zip(base, values, strict=True)
    return [None if before is None or after is None else after - before for before, after in pairs]


def _seeds(count: int) -> str:
    return f"{count} seed" if count == 1 else f"{count} seeds"
