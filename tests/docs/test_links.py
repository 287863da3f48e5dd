"""Links between pages lead somewhere, also to a heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8")))
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors_of(there), target


def test_every_decision_fits_its_page() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(decision.name[:4]) for decision in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for decision in decisions:
        lines = decision.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 40, decision.name
        assert lines[0].startswith(f"# {decision.name[:4]} ")


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md))`", text))
    assert named
    places = (ROOT, ROOT / "src" / "wattline")
    assert [path for path in sorted(named) if not any((place / path).exists() for place in places)] == []


def test_rooms_that_the_architecture_lists_are_those_there_are() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z]+)(?:/|\.py)` \|", text.partition("## From YAML")[0], re.MULTILINE)
    source = ROOT / "src" / "wattline"
    there = {
        path.stem for path in source.iterdir() if path.name not in {"__init__.py", "__pycache__", "py.typed"}
    }
    assert set(listed) == there


def test_rooms_of_the_policy_that_the_architecture_lists_are_those_there_are() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `policy/([a-z_]+)/` \|", text, re.MULTILINE)
    policy = ROOT / "src" / "wattline" / "policy"
    assert set(listed) == {path.parent.name for path in policy.glob("*/__init__.py")}
