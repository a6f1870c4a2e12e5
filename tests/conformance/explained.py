"""Tests of the client that end otherwise through the sidecar, and why that is right.

A key is a part of the test's name; a test that no key fits is an unexplained difference, and the run fails.
"""

from collections.abc import Mapping

EXPLAINED: Mapping[str, str] = {}
