from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import msgspec
import pytest

from wattline.decoding import decode_json

# What these types are of is worked out in Python at their first use: there, threads change.
_FIRST_IN_MANY_THREADS = dedent("""
    from __future__ import annotations
    import sys, threading
    import msgspec
    from wattline.decoding import decode_json

    sys.setswitchinterval(1e-6)
    inner = b'{"a":1,"b":"x","c":{"y":2}}'
    outer = b'{"one":' + inner + b',"more":[' + inner + b']}'

    for _ in range(20):
        class Inner(msgspec.Struct):
            a: int | None
            b: str
            c: dict[str, int]

        class Outer(msgspec.Struct):
            one: Inner
            more: tuple[Inner, ...]

        together = threading.Barrier(8)

        def decode():
            together.wait()
            decode_json(outer, Outer)

        threads = [threading.Thread(target=decode) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("alive")
""")


def test_many_threads_may_be_the_first_to_decode_a_type() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FIRST_IN_MANY_THREADS], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "alive"), ended.stderr


def test_what_is_not_of_the_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        decode_json(b'["x"]', list[int])
