"""The supervisor's entry: `python -I -S -X utf8 …/engines/supervisor LOCK_FD`, orders on standard input."""
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

from wattline.engines.supervisor.lines import Lines
from wattline.engines.supervisor.orders import Orders
from wattline.engines.supervisor.supervision import Supervision


def main() -> int:
    """Supervise one attempt, from the first line on standard input until nothing of it is left."""
    os.set_inheritable(int(sys.argv[1]), False)
    lines = Lines(sys.stdin.fileno())
    first = lines.first()
    if first is None:
        return 0
    Supervision(Orders(first), lines).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
