"""What is known before a run: preflight checks."""

from wattline.checks.preflight import Check, Preflight, preflight

__all__ = ["Check", "Preflight", "preflight"]
