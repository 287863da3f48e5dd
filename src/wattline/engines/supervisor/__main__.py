"""The supervisor's entry: `python -I -S -X utf8 …/engines/supervisor LOCK_FD`, orders on standard input.

Or `… supervisor --folder DIRECTORY` on a machine of a scheduler: orders and all else through that folder.
"""
# ruff: noqa: E402

from __future__ import annotations

import os
import sys
from types import ModuleType

# Importing `wattline.engines` in full would load the engine and what it needs. A supervisor needs neither:
# it names the two packages by their place only, and finds its own modules in them.
_wattline = __file__.rpartition("/engines/")[0]
for _name, _place in (("wattline", _wattline), ("wattline.engines", f"{_wattline}/engines")):
    if _name not in sys.modules:
        _package = ModuleType(_name)
        _package.__path__ = [_place]
        sys.modules[_name] = _package

from wattline.engines.supervisor.control import Folder, Leased, Pipes
from wattline.engines.supervisor.lines import Lines
from wattline.engines.supervisor.orders import Orders, take_orders
from wattline.engines.supervisor.supervision import Supervision


def main() -> int:
    """Supervise one attempt, from its orders until nothing of it is left."""
    if sys.argv[1] == "--folder":
        return _supervise_in(sys.argv[2])
    os.set_inheritable(int(sys.argv[1]), False)
    lines = Lines(sys.stdin.fileno())
    first = lines.first()
    if first is None:
        return 0
    orders = Orders(first)
    if orders.lease_until is None:
        Supervision(orders, Pipes(lines, orders.control_pid)).run()
    else:
        Supervision(orders, Leased(lines, orders.directory, orders.lease_until)).run()
    return 0


def _supervise_in(directory: str) -> int:
    taken = take_orders(directory)
    if taken is None:
        print("wattline: no orders here: they were taken already, or taken back", file=sys.stderr)
        return 0
    orders = Orders(taken)
    Supervision(orders, Folder(directory, is_leased=orders.lease_until is not None)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
