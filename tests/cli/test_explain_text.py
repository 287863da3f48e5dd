"""An explanation on a narrow terminal: what is to be copied is not broken."""

from __future__ import annotations

import io

from rich.console import Console

from wattline.cli.explain_text import options_table
from wattline.policy import Option


def test_what_to_write_for_a_change_stands_on_a_line_to_be_copied() -> None:
    options = (
        Option(
            change="cap its power at 65 % (speed 92 %), at zurich, and accept H100 too",
            starts_at=0.0,
            cost_delta_usd=2.53,
            fields={"constraints.peak_power": "6240W", "resources.gpu": ("A100", "H100")},
        ),
        Option(
            change="wait until another-1119-223534-fbe5/train has ended", starts_at=60.0, cost_delta_usd=0
        ),
    )
    written = io.StringIO()
    Console(file=written, width=80).print(options_table(options, 0.0))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    for field in ("in wattline.yaml", "constraints.peak_power: 6240W", "resources.gpu: [A100, H100]"):
        assert any(line.endswith(field) for line in lines), lines
