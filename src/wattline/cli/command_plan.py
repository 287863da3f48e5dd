"""The plan command: what would each option buy, in useful GPU-hours for each dollar and each kWh?"""

from __future__ import annotations

from pathlib import Path

from wattline.cli.command_replay import prepare_pictures
from wattline.cli.plan_text import print_plan
from wattline.cli.printing import print_json
from wattline.cli.twin_doubts import doubts_about
from wattline.cli.twin_progress import TwinProgress
from wattline.twin.plan import Progress, run_plan
from wattline.twin.plan_plot import write_plan_plot
from wattline.twin.planning import Asked, read_ground
from wattline.twin.run import Glimpse


def plan_capacity(asked: Asked, *, plots: Path | None, as_json: bool) -> int:
    prepare_pictures(plots, None)
    with TwinProgress() as progress:
        ground = read_ground(asked)
        for doubt in doubts_about(ground.material) if ground.material else ():
            progress.say(doubt)
        runs, ended = len(ground.seeds) * (1 + len(ground.choices)), 0

        def tell(told: Progress) -> None:
            nonlocal ended
            label = f"{told.choice}, seed {told.seed}"
            if isinstance(told.news, Glimpse):
                jobs = max(1, told.news.submitted)
                progress.tell(label, told.news, jobs, ground.horizon_seconds)
                return
            ended += 1
            progress.end(label)
            progress.say(f"{ended} of {runs} runs: {label}, {told.news.wall_seconds:.1f} s")

        report = run_plan(
            ground.name,
            ground.setting_of,
            ground.choices,
            seeds=ground.seeds,
            horizon_seconds=ground.horizon_seconds,
            tell=tell,
        )
        written = None if plots is None else write_plan_plot(report, plots)
    if as_json:
        print_json(report)
    else:
        print_plan(report)
    if written is not None:
        progress.say(f"wrote {written}")
    return 0
