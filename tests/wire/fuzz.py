"""How many examples a property gets: few by default, the nightly number with FUZZ=1."""

import os

from hypothesis import settings

NIGHTLY = 50_000


def examples(usual: int) -> settings:
    nightly = bool(os.environ.get("FUZZ"))
    return settings(max_examples=NIGHTLY if nightly else usual, deadline=None)
