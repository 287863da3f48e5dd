"""The compare command: which policy does better on the same jobs, and would it again with other seeds?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from wattline.cli.printing import print_json
from wattline.cli.twin_doubts import doubts_about
from wattline.cli.twin_progress import TwinProgress
from wattline.cli.twin_text import print_comparison
from wattline.errors import UsageError
from wattline.twin.comparison import compare
from wattline.twin.lanes import Lap, run_laps
from wattline.twin.replaying import Question, read_material, read_rules
from wattline.twin.report import Report
from wattline.twin.run import Glimpse


def compare_policies(
    question: Question, policies: Sequence[str], *, seeds: int, lanes: int, as_json: bool
) -> int:
    with TwinProgress() as progress:
        names = _name_policies(policies)
        material = read_material(question)
        for doubt in doubts_about(material):
            progress.say(doubt)
        # Seed by seed, so that whoever interrupts it has seen every policy run.
        laps = [Lap(policy, question.seed + seed) for seed in range(seeds) for policy in policies]
        jobs, until_seconds = len(material.trace.jobs), question.until_seconds
        ended = 0

        def tell(lap: Lap, news: Glimpse | Report) -> None:
            nonlocal ended
            label = f"{names[lap.policy]}, seed {lap.seed}"
            if isinstance(news, Glimpse):
                progress.tell(label, news, jobs, until_seconds)
                return
            ended += 1
            progress.end(label)
            progress.say(f"{ended} of {len(laps)} runs: {label}, {news.wall_seconds:.1f} s")

        reports = run_laps(material, laps, lanes=min(lanes, len(laps)), tell=tell)
    named = [
        msgspec.structs.replace(report, policy=names[lap.policy])
        for lap, report in zip(laps, reports, strict=True)
    ]
    comparison = compare(named)
    if as_json:
        print_json({**msgspec.to_builtins(comparison), "runs": named})
    else:
        print_comparison(comparison)
    return 0


def _name_policies(policies: Sequence[str]) -> dict[str, str]:
    """What each is called in a table: its own name, or what a person wrote where two have the same name."""
    if len(policies) < 2:
        raise UsageError(
            "there is nothing to compare with one policy",
            hint="name two or more: --policy default --policy easy",
        )
    twice = [policy for policy, count in Counter(policies).items() if count > 1]
    if twice:
        raise UsageError(f"policy {twice[0]} is named twice", hint="name each policy once")
    own = {policy: read_rules(policy).name for policy in policies}
    shared = {name for name, count in Counter(own.values()).items() if count > 1}
    return {policy: policy if name in shared else name for policy, name in own.items()}
