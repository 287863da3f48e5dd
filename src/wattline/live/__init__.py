"""World made of engines, telemetry and the wall clock."""

from wattline.live.home import Home
from wattline.live.launching import hash_data
from wattline.live.meters import Meters
from wattline.live.replicas import find_lacking
from wattline.live.running import Goods, RunSource
from wattline.live.world import LiveWorld

__all__ = ["Goods", "Home", "LiveWorld", "Meters", "RunSource", "find_lacking", "hash_data"]
