"""Microsoft Presidio's recognisers that need no language model, of all countries.

`pii` takes every result, as the analyzer does by default; `pii-sure` those with a score of 0.5 or more. Scores are
not raised by words nearby: that takes a language model.
"""

from importlib.metadata import version

import tldextract
import wire
from presidio_analyzer import PatternRecognizer, predefined_recognizers

# The list of top-level domains that came with the package, not one from the network.
tldextract.extract = tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())
_SCORES = {"pii": 0.0, "pii-sure": 0.5}
# Looks for something else than personal data.
_NOT_PII = {"UrlRecognizer", "UuidRecognizer"}
# No pattern, but no model either.
_ALSO = {"PhoneRecognizer"}


def recognizers():
    for name in dir(predefined_recognizers):
        kind = getattr(predefined_recognizers, name)
        if isinstance(kind, type) and name not in _NOT_PII and (issubclass(kind, PatternRecognizer) or name in _ALSO):
            yield from made(kind)


def made(kind):
    try:
        yield kind()
    except Exception:  # an abstract one, or one that wants a service
        return


ALL = list(recognizers())


def find(kind, text):
    if kind not in _SCORES:
        return
    for recognizer in ALL:
        for result in recognizer.analyze(text, recognizer.supported_entities, None):
            if result.score >= _SCORES[kind]:
                yield result.start, result.end


if __name__ == "__main__":
    wire.serve(version("presidio-analyzer"), find)
