"""Corpus: text for a very small language model to learn, written by a seeded grammar.

Put your own text at data/corpus.txt instead, then `wattline data pin data/corpus.txt`. Until then
`python make_data.py` writes the same bytes every time.
"""

from __future__ import annotations

import random
from pathlib import Path

SEED = 11
PARAGRAPHS = 180

HALLS = ["north hall", "south hall", "east annex", "west annex", "the basement hall"]
PARTS = ["feed", "pump", "chiller", "loop", "rack", "breaker", "fan wall", "busbar", "manifold", "valve"]
JOBS = ["the nightly training", "a small sweep", "the long run", "an evaluation", "the speech model"]
PEOPLE = ["the operator", "the night shift", "the team", "the planner", "a technician"]
CAUSES = [
    "the supply water is warm",
    "the price of power is high",
    "one pump has stopped",
    "the grid asked for less",
    "a filter is blocked",
    "the link to the other site is slow",
]
ACTIONS = [
    "lower the power limit",
    "shrink the batch",
    "save a checkpoint",
    "pause the job",
    "move the job to another hall",
    "wait for cooler water",
]
RULES = [
    "A breaker trips on the peak, not on the average.",
    "Heat that is not carried away comes back as lost time.",
    "A checkpoint is worth what it would cost to compute it again.",
    "Never pause every job at once.",
    "An old reading counts as the worst it could be.",
    "Power that was promised is power that is gone.",
]


def log_line(draw: random.Random) -> str:
    clock = f"{draw.randrange(24):02d}:{draw.randrange(0, 60, 15):02d}"
    hall, part = draw.choice(HALLS), draw.choice(PARTS)
    supply, back = draw.randrange(18, 28, 2), draw.randrange(30, 40, 2)
    return draw.choice(
        [
            f"{clock} {hall}: {part} {draw.randrange(1, 9)} at {draw.randrange(40, 100, 10)} percent.",
            f"{clock} {hall}: supply {supply} degrees, return {back} degrees.",
            f"{clock} {hall}: {draw.choice(JOBS)} draws {draw.randrange(20, 90, 10)} kilowatts.",
            f"{clock} {hall}: {draw.choice(PEOPLE)} chose to {draw.choice(ACTIONS)}.",
            f"{clock} {hall}: {draw.choice(CAUSES)}.",
        ]
    )


def handbook_sentence(draw: random.Random) -> str:
    cause, action, other = draw.choice(CAUSES), draw.choice(ACTIONS), draw.choice(ACTIONS)
    part, job, person = draw.choice(PARTS), draw.choice(JOBS), draw.choice(PEOPLE)
    return draw.choice(
        [
            f"When {cause}, {person} should {action} before the {part} reaches its limit.",
            f"If {job} cannot {action}, then {person} has to {other}.",
            f"The {part} of {draw.choice(HALLS)} carries no more than it was built for, even when {cause}.",
            f"It is better to {action} early than to {other} late.",
            f"{job[0].upper()}{job[1:]} may go on while {cause}, as long as the {part} stays cool.",
            draw.choice(RULES),
        ]
    )


def write_corpus() -> str:
    """Paragraphs of the two voices in turn, each line of a log on its own."""
    draw = random.Random(SEED)
    paragraphs = []
    for number in range(PARAGRAPHS):
        if number % 2 == 0:
            paragraphs.append("\n".join(log_line(draw) for _ in range(draw.randrange(4, 9))))
        else:
            paragraphs.append(" ".join(handbook_sentence(draw) for _ in range(draw.randrange(3, 6))))
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    path = Path(__file__).parent / "data" / "corpus.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(write_corpus(), encoding="ascii")
    print(f"{path}: {path.stat().st_size} bytes")
