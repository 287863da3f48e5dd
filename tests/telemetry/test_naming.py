"""Naming: a name means one subject, with its site or without."""

from __future__ import annotations

from wattline.telemetry.naming import find_subjects, qualify

SUBJECTS = ["zurich/r1", "zurich/crah", "frankfurt/r1"]


def test_a_name_gets_its_site_once() -> None:
    assert qualify("zurich", "crah") == "zurich/crah"
    assert qualify("zurich", "zurich/crah") == "zurich/crah"


def test_a_bare_name_means_every_subject_that_ends_with_it_and_a_full_one_only_itself() -> None:
    assert find_subjects("crah", SUBJECTS) == ["zurich/crah"]
    assert find_subjects("r1", SUBJECTS) == ["zurich/r1", "frankfurt/r1"]
    assert find_subjects("zurich/r1", SUBJECTS) == ["zurich/r1"]
    assert find_subjects("rah", SUBJECTS) == []
