from __future__ import annotations

from wattline.plane.moments import clock, iso


def test_moments_are_told_in_full_to_programs_and_in_short_to_people() -> None:
    assert iso(0.25) == "1970-01-01T00:00:00.250Z"
    assert iso(None) is None
    assert clock(0.25).count(":") == 2
