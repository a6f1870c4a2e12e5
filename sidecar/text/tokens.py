"""How many tokens a text comes to, without the model's own tokenizer: an estimate made of its bytes, and a factor per
model that is learned from what providers report.

The estimate counts a quarter of a token for each character, more for each byte beyond ASCII, and more for each capital
and digit, which noise such as base64 is full of. It is meant to be high rather than low. Against OpenAI's o200k_base
(tests/text/tokens.json holds its counts) it gives, as a share of the true number:

    prose, markdown, source code, shell          0.95 to 1.25
    JSON, log lines, tables of numbers           1.0 to 1.5
    base64, hex, UUIDs                           0.85 to 1.2
    German, French, Polish, Turkish              0.8 to 1.25
    Chinese, Japanese, Korean                    1.2 to 1.4
    Russian, Greek, Arabic, Hebrew               1.4 to 2.1
    Hindi, Thai, text in capitals, long numbers  2.4 to 3.2
    letters at random                            0.45

One character over and over is beyond all bounds, on the high side.
docs/decisions/0015-token-estimates.md says why no tokenizer is asked.
"""

import math
from collections.abc import Iterable
from typing import Final

# Weights are counted in twentieths of a token.
_UNIT: Final = 20
_CHARACTER: Final = 5
# What UTF-8 needs beyond one byte a character.
_EXTRA_BYTE: Final = 8
_DENSE: Final = 13
_DENSE_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
# Of a longer text so many blocks of so many bytes are looked at, evenly spread: a megabyte costs microseconds. Blocks,
# not single bytes: the lines of a table are often all of one length.
_BLOCKS: Final = 32
_BLOCK: Final = 128
_SAMPLE: Final = _BLOCKS * _BLOCK

# OpenAI's cookbook, "How to count tokens with tiktoken": three for each message, and three that prime the reply.
PER_MESSAGE: Final = 3
PRIMING: Final = 3


def weight(text: str) -> int:
    """What a text weighs, in twentieths of a token. Weights of pieces add up, those of texts beyond a few
    kilobytes nearly; give the sum to `tokens`.
    """
    raw = text.encode("utf-8", "surrogatepass")
    sample = raw if len(raw) <= _SAMPLE else _sampled(raw)
    dense = len(sample) - len(sample.translate(None, _DENSE_BYTES))
    if sample is not raw:
        dense = -(-dense * len(raw) // _SAMPLE)
    return _CHARACTER * len(text) + _EXTRA_BYTE * (len(raw) - len(text)) + _DENSE * dense


def _sampled(raw: bytes) -> bytes:
    last = len(raw) - _BLOCK
    starts = [last * number // (_BLOCKS - 1) for number in range(_BLOCKS)]
    return b"".join([raw[start : start + _BLOCK] for start in starts])


def tokens(weight: int) -> int:
    """The tokens that a weight comes to, rounded up."""
    return -(-weight // _UNIT)


def estimate(texts: Iterable[str], messages: int = 0, ids: int = 0) -> int:
    """Tokens of a prompt: its texts, the frame around each message, and tokens that are given as numbers."""
    framing = PER_MESSAGE * messages + PRIMING if messages else 0
    return tokens(sum(map(weight, texts))) + framing + ids


LOWEST: Final = 0.5
HIGHEST: Final = 3.0
# Of the way to what was just observed, how much the factor goes at once: up quickly, down slowly.
_UP: Final = 0.5
_DOWN: Final = 0.05
SHORT_OF: Final = 0.9
"""After an observation a factor is at least this share of the ratio just seen, as far as the bounds let it."""
# In fewer tokens the frame that a provider puts around a prompt is more than the prompt.
LEAST: Final = 50
# Names of models come from clients: the ones not seen for longest are forgotten.
MAX_MODELS: Final = 1000


class Calibration:
    """What estimates of each model's prompts have to be multiplied with: learned, between LOWEST and HIGHEST.

    An average that follows ratios upward at half the distance, and is then no lower than SHORT_OF of the ratio just
    seen; downward it goes a twentieth of the distance. So it stays near the worst of what is usual.
    """

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}

    def factor(self, model: str) -> float:
        return self._factors.get(model, 1.0)

    def corrected(self, model: str, estimated: int) -> int:
        """The estimate as this model would count, rounded up."""
        return math.ceil(estimated * self.factor(model))

    def learn(self, model: str, estimated: int, reported: int | None) -> None:
        """A provider has reported a prompt that was estimated, uncorrected, at so much.

        Give it only prompts all of which was estimated: an image or what the provider keeps would count as text.
        """
        if reported is None or reported <= 0 or estimated < LEAST:
            return
        ratio = min(max(reported / estimated, LOWEST), HIGHEST)
        old = self._factors.pop(model, 1.0)
        new = old + (ratio - old) * (_UP if ratio > old else _DOWN)
        self._factors[model] = max(new, SHORT_OF * ratio, LOWEST)
        if len(self._factors) > MAX_MODELS:
            del self._factors[next(iter(self._factors))]
