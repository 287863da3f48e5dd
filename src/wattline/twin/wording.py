"""How is a figure written so that it can be read aloud?"""

from __future__ import annotations

from collections.abc import Callable

from wattline.units import SECONDS_PER_HOUR, format_seconds, format_share, format_watts

UNKNOWN = "not known"


def say_count(value: float) -> str:
    """Whole numbers up to their last digit, with commas; means of them to three digits."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def say_energy(kwh: float | None) -> str:
    return UNKNOWN if kwh is None else f"{format_watts(1000 * kwh)}h"


def say_power(kw: float | None) -> str:
    return UNKNOWN if kw is None else format_watts(1000 * kw)


def say_mass(kg: float | None) -> str:
    if kg is None:
        return UNKNOWN
    return f"{_digits(kg / 1000)} t" if abs(kg) >= 999.5 else f"{_digits(kg)} kg"


def say_money(usd: float | None) -> str:
    if usd is None:
        return UNKNOWN
    return f"{usd:,.0f} USD" if abs(usd) >= 100 else f"{usd:,.2f} USD"


def say_minutes(minutes: float | None) -> str:
    return UNKNOWN if minutes is None else format_seconds(60 * minutes)


def say_gpu_hours(hours: float | None) -> str:
    """Without a unit: whatever it is called says GPU-hours."""
    return UNKNOWN if hours is None else _digits(hours)


def say_gpu_seconds(seconds: float) -> str:
    """As GPU-hours: whatever it is called says so."""
    return _digits(seconds / SECONDS_PER_HOUR)


def say_added(seconds: float) -> str:
    """Time of several at once, added up: in hours at most, as days would be taken for those of a calendar."""
    if seconds < SECONDS_PER_HOUR:
        return format_seconds(seconds)
    return f"{_digits(seconds / SECONDS_PER_HOUR)} h"


def say_share(fraction: float | None) -> str:
    return UNKNOWN if fraction is None else format_share(fraction)


def say_ratio(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio:.3f}"


def one_line(text: str, most: int) -> str:
    """A name from outside, on one line and no longer than there is room for."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def say_metric(metric: str, value: float) -> str:
    """A metric of a comparison, by its name in a Report."""
    return _METRICS.get(metric.partition(".")[0], say_count)(value)


def say_difference(metric: str, value: float) -> str:
    """Between two of them: of shares in points, as 60 % is not 8 % less than 68 %."""
    if metric == "utilisation":
        return f"{_digits(100 * value)} points"
    return say_metric(metric, value)


def _digits(value: float) -> str:
    """Three digits, but never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


_METRICS: dict[str, Callable[[float], str]] = {
    "wait_minutes": say_minutes,
    "completion_minutes": say_minutes,
    "utilisation": say_share,
    "useful_gpu_hours": say_gpu_hours,
    "lost_gpu_hours": say_gpu_hours,
    "energy_kwh": say_energy,
    "cost_usd": say_money,
    "carbon_kg": say_mass,
    "peak_kw": say_power,
    "cap_violation_seconds": say_added,
    "throttle_gpu_seconds": say_gpu_seconds,
    "power_throttle_gpu_seconds": say_gpu_seconds,
    "heat_throttle_gpu_seconds": say_gpu_seconds,
}
