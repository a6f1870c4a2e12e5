"""Texts to measure on, as many and as long as wanted, the same for the same seed, and free of findings."""

import base64
import random
import re
from collections.abc import Callable
from functools import cache
from inspect import getsource
from types import ModuleType

from bench.prose import PROSE


@cache
def _sentences() -> tuple[str, ...]:
    return tuple(re.split(r"(?<=[.:?!]) |\n\n", PROSE))


def prose(size: int, seed: int) -> str:
    chance = random.Random(seed)
    return _filled(size, lambda: chance.choice(_sentences()) + chance.choice((" ", " ", " ", "\n\n")))


@cache
def _functions() -> tuple[str, ...]:
    import argparse
    import dataclasses
    import inspect
    import logging
    import textwrap
    import typing

    modules: tuple[ModuleType, ...] = (argparse, dataclasses, inspect, logging, textwrap, typing)
    return tuple(part for module in modules for part in re.split(r"(?m)^(?=def |class )", getsource(module)))


def code(size: int, seed: int) -> str:
    chance = random.Random(seed)
    return _filled(size, lambda: chance.choice(_functions()))


_LINES = (
    "2026-03-{d:02}T{h:02}:{m:02}:{s:02}.{n:03}Z INFO  [worker-{d}] http: GET /v1/items/{n}?page={s} 200 {n}us req={u}",
    "2026-03-{d:02}T{h:02}:{m:02}:{s:02}.{n:03}Z DEBUG [worker-{d}] cache: hit key=item:{n}:{s} size={n} rate=0.{s:02}",
    '{{"ts": "2026-03-{d:02}T{h:02}:{m:02}:{s:02}Z", "level": "warn", "msg": "slow query", "ms": {n}, "trace": "{u}"}}',
    "2026-03-{d:02}T{h:02}:{m:02}:{s:02}.{n:03}Z ERROR [pool-{s}] db: connection reset by peer (attempt {d} of 30)",
)


def logs(size: int, seed: int) -> str:
    chance = random.Random(seed)

    def line() -> str:
        fields = {"d": chance.randint(1, 28), "h": chance.randrange(24), "m": chance.randrange(60)}
        ids = f"{chance.getrandbits(32):08x}-{chance.getrandbits(16):04x}-4{chance.getrandbits(12):03x}"
        more = {"s": chance.randrange(60), "n": chance.randrange(1000), "u": ids}
        return chance.choice(_LINES).format(**fields, **more) + "\n"

    return _filled(size, line)


def latin1(size: int, seed: int) -> str:
    """Random bytes, each as the character of its number."""
    return random.Random(seed).randbytes(size).decode("latin-1")


def base64_text(size: int, seed: int) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()[:size]


def dirty(size: int, seed: int) -> str:
    """Prose with an e-mail address or a key about every thousand characters."""
    chance = random.Random(seed)
    text = prose(size, seed)
    parts = [text[at : at + 1000] for at in range(0, size, 1000)]
    alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

    def value() -> str:
        noise = "".join(chance.choices(alphabet, k=36))
        return chance.choice((f" ghp_{noise} ", f" {noise[:8]}@mail.example.net "))

    return "".join(part + value() for part in parts)[:size]


def _filled(size: int, part: Callable[[], str]) -> str:
    parts: list[str] = []
    while size > 0:
        parts.append(part())
        size -= len(parts[-1])
    text = "".join(parts)
    return text[: len(text) + size]


CLEAN: dict[str, Callable[[int, int], str]] = {"prose": prose, "code": code, "logs": logs}
RANDOM: dict[str, Callable[[int, int], str]] = {"latin-1": latin1, "base64": base64_text}
ALL = {**CLEAN, **RANDOM, "prose with hits": dirty}
