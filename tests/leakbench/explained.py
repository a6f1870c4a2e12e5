"""Faults that are known, and why they are there. A key is a part of the fault's line.

One that no fault fits any longer is a fault itself, so that nothing stays explained for longer than it is there.
"""

from collections.abc import Mapping

EXPLAINED: Mapping[str, str] = {}
