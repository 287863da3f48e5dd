"""What did a cluster lose, and what would Wattline have decided? Looks, and touches nothing."""

from wattline.observing.asking import ReadOnly
from wattline.observing.concluding import conclude
from wattline.observing.observing import Seen, Wanted, see
from wattline.observing.report import Report

__all__ = ["ReadOnly", "Report", "Seen", "Wanted", "conclude", "see"]
