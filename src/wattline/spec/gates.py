"""Which metrics does a gate speak of, and does it hold? Gates are written over whatever a phase measured."""

from __future__ import annotations

from wattline.spec.expression import Expression, compile_expression, spoken_names


def gate_metrics(text: str) -> tuple[str, ...]:
    """The metrics a gate needs, in the order it names them: `accuracy >= 0.92` needs `accuracy`."""
    return spoken_names(text)


def compile_gate(text: str) -> Expression:
    """Compile a gate over the metrics it names; raises ValueError when it cannot be read."""
    return compile_expression(text, gate_metrics(text))


def check_gate(text: str) -> str:
    """Validate a gate in a document: it compiles, and it speaks of at least one metric."""
    if not compile_gate(text).names:
        raise ValueError("a gate speaks of at least one metric, such as accuracy >= 0.92")
    return text
