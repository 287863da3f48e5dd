"""What is known before a run: preflight checks, and how it would fare here."""

from wattline.checks.preflight import Asking, Check, Preflight, preflight

__all__ = ["Asking", "Check", "Preflight", "preflight"]
