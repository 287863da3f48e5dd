"""Wattline: the control plane between a team's repository and its GPU halls."""

__version__ = "0.1.0"
