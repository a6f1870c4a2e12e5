"""How the bench talks with a peer in an environment of its own: one JSON line in, one out. Standard library only.

    {"kind": "secrets", "texts": [...]}              -> {"spans": [[[start, end], ...], ...]}
    {"kind": "secrets", "time": "text", "for": 0.2}  -> {"ns": CPU nanoseconds of one look at the text}

A peer is a function `find(kind, text)` that returns spans in characters. The first line out is {"ready": version}.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable

Find = Callable[[str, str], Iterable[tuple[int, int]]]


def serve(version: str, find: Find) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    print(json.dumps({"ready": version}), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(answer(find, asked)), file=out, flush=True)


def answer(find: Find, asked: dict) -> dict:
    kind = asked["kind"]
    if "texts" in asked:
        return {"spans": [sorted(set(map(tuple, find(kind, text)))) for text in asked["texts"]]}
    return {"ns": nanoseconds(lambda: find(kind, asked["time"]), asked["for"])}


def nanoseconds(work: Callable[[], object], seconds: float) -> float:
    """CPU time of one call: the best of several, within about so many seconds of CPU time."""
    best, spent = float("inf"), 0.0
    while spent < seconds:
        began = time.process_time()
        list(work() or ())
        took = time.process_time() - began
        best, spent = min(best, took), spent + max(took, 1e-5)
    return best * 1e9
