"""Findings: what did checks and policy find, as one list of rules, levels and places?"""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from wattline.checks.report import Check, Report, Said

DOCUMENTATION = "https://github.com/wattline/wattline/blob/main/docs/checks.md"
Level = Literal["error", "warning", "note", "none"]
_LEVELS: dict[str, Level] = {"fail": "error", "warn": "warning", "skip": "note", "pass": "none"}
_RANKS = {"error": 0, "warning": 1, "note": 2, "none": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check or one rule of the policy said of one thing."""

    rule: str  # stable: a check's name, or policy. and the rule's
    level: Level  # error only where the report blocks
    subject: str
    message: str
    fix: str
    file: str  # from the root of the repository
    line: int
    skipped: bool  # it could not be looked at
    fingerprint: str  # the same as long as the rule says something of the same thing

    @property
    def title(self) -> str:
        return f"{self.rule} {self.subject}".rstrip()

    @property
    def text(self) -> str:
        return f"{self.message}; {self.fix}" if self.fix else self.message

    @property
    def help_uri(self) -> str:
        return f"{DOCUMENTATION}#{anchor(self.rule)}"


def findings_of(report: Report) -> list[Finding]:
    """All of them, the most important first; what passed is there too."""
    seen: Counter[str] = Counter()
    found = [_of_check(report, checked, seen) for checked in report.preflight]
    found += [_of_policy(report, said, seen) for said in report.policy]
    return sorted(found, key=lambda finding: _RANKS[finding.level])


def anchor(rule: str) -> str:
    """The heading in docs/checks.md, as a page makes anchors of headings: dots go."""
    if rule.startswith("policy."):
        return "policy"
    return "".join(letter for letter in rule.lower() if letter.isalnum() or letter in "-_")


def level_of(said: Said) -> Level:
    if said.outcome == "refuse":
        return "error" if said.mode in {"block", "enforce"} else "warning"
    return "warning" if said.outcome == "warn" else "note" if said.outcome == "wait" else "none"


def _of_check(report: Report, checked: Check, seen: Counter[str]) -> Finding:
    file = _from_root(report.file, checked.file)
    return Finding(
        rule=checked.check,
        level=_softened(report, _LEVELS[checked.outcome]),
        subject=checked.subject,
        message=checked.message,
        fix=checked.fix,
        file=file,
        line=checked.line if checked.line is not None and checked.line > 0 else 1,
        skipped=checked.outcome == "skip",
        fingerprint=_fingerprint(seen, checked.check, file, checked.subject),
    )


def _of_policy(report: Report, said: Said, seen: Counter[str]) -> Finding:
    rule = f"policy.{said.rule}"
    return Finding(
        rule=rule,
        level=_softened(report, level_of(said)),
        subject=said.phase,
        message=said.message,
        fix=said.fix,
        file=_from_root(report.file, None),
        line=1,
        skipped=False,
        fingerprint=_fingerprint(seen, rule, report.file, said.phase),
    )


def _softened(report: Report, level: Level) -> Level:
    """Where the policy's review only warns or reports, nothing turns a merge red."""
    return "warning" if level == "error" and report.verdict != "block" else level


def _from_root(pipeline_file: str, file: str | None) -> str:
    """A check names files from the pipeline's folder; what lies elsewhere has no place in a diff."""
    pipeline = posixpath.normpath(pipeline_file.lstrip("/") or "wattline.yaml")
    if file is None:
        return pipeline
    path = posixpath.normpath(posixpath.join(posixpath.dirname(pipeline), file))
    return pipeline if path.startswith(("/", "../")) or path in {".", ".."} else path


def _fingerprint(seen: Counter[str], *parts: str) -> str:
    """Without line and message: both change while the thing stays the same."""
    text = "\0".join(parts)
    seen[text] += 1
    if seen[text] > 1:
        text += f"\0{seen[text]}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
