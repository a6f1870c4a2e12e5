"""Runs the whole benchmark: both directions, every split of every value, parts of values counted too.

Exit code 0: it passes, or it cannot be installed here, which is said. 1: it does not pass.
"""

import sys

from .parts import Unavailable, gateway, install, replies, requests
from .verdict import faults


def main() -> int:
    try:
        install()
    except Unavailable as missing:
        print(f"skipped: {missing}")
        return 0
    with gateway("requests") as (sidecar, port):
        asked = requests(sidecar, port)
    print(asked.said)
    with gateway("replies") as (sidecar, port):
        answered, reports = replies(sidecar, port, "--exhaustive-splits")
    print(answered.said)
    found = faults(reports["report"], reports["partial"])
    print("\n".join(found) or "no fault that is not explained in tests/leakbench/explained.py")
    return int(bool(asked.code or answered.code or found))


sys.exit(main())
