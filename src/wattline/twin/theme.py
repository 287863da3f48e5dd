"""How do all pictures look alike, by day and by night?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours by role; those for sites stay apart for eyes that do not tell red from green."""

    name: str
    paper: str
    ink: str
    muted: str
    grid: str
    limit: str  # caps
    throttled: str  # unlike anything on the way from cool to hot
    sites: tuple[str, ...]
    rest: str  # sites beyond those that have a colour
    heat: tuple[str, ...]  # from cool to hot

    def settings(self) -> dict[str, object]:
        """What matplotlib is told, over its own defaults and never over a user's."""
        return {
            "figure.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "axes.edgecolor": self.muted,
            "axes.labelcolor": self.muted,
            "axes.grid": True,
            "axes.grid.axis": "y",
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 9,
            "axes.titlepad": 5,
            "axes.labelsize": 8.5,
            "grid.color": self.grid,
            "grid.linewidth": 0.6,
            "text.color": self.ink,
            "text.parse_math": False,  # a name with two dollar signs is a name
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "ytick.major.size": 0,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "font.family": "DejaVu Sans",  # comes with matplotlib, so that pictures are the same everywhere
        }


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1b1f24",
    muted="#5a6472",
    grid="#e4e7eb",
    limit="#b3261e",
    throttled="#b5127f",
    sites=("#2166ac", "#e08214", "#1b9e77", "#8c5bb5", "#c9a100", "#4db3d3"),
    rest="#9aa3ad",
    heat=("#eef2f7", "#c3d3e6", "#f3e3a6", "#f2c14e", "#ea9a2e"),
)
DARK = Theme(
    name="dark",
    paper="#14171b",
    ink="#e8eaed",
    muted="#a2abb6",
    grid="#2a3037",
    limit="#ff7a70",
    throttled="#ff5cc8",
    sites=("#5aa2e0", "#f0a04b", "#3fc49a", "#b48ad8", "#e3c13d", "#7fd0ea"),
    rest="#77818c",
    heat=("#1b222b", "#26405c", "#5b5634", "#a47a2a", "#f0a832"),
)
