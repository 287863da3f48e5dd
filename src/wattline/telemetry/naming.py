"""Naming: which thing of a facility does a name mean, written with its site or without?"""

from __future__ import annotations

from collections.abc import Iterable


def qualify(site: str, name: str) -> str:
    """The subject that readings use: `site/name`; a name that has its site already stays as it is."""
    return name if name.startswith(f"{site}/") else f"{site}/{name}"


def find_subjects(name: str, subjects: Iterable[str]) -> list[str]:
    """All subjects that a name can mean: itself, or else every `site/name` that ends with it."""
    known = list(subjects)
    return [name] if name in known else [subject for subject in known if subject.split("/", 1)[-1] == name]
