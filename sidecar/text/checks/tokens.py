"""What tells a secret from a name, a placeholder or a piece of code."""

import re
from base64 import b64decode
from collections import Counter
from math import log2

from sidecar.text.checks.numbers import Check, words_of
from sidecar.text.engine import Program


def entropy(value: str) -> float:
    """Shannon's entropy of the characters of `value`, in bits a character; 0 for empty text."""
    total = len(value)
    return -sum(n / total * log2(n / total) for n in Counter(value).values())


def min_entropy(bits: float) -> Check:
    """The check that a value has at least `bits` bits a character."""

    def check(value: str) -> bool:
        return entropy(value) >= bits

    check.__name__ = f"entropy of {bits} bits"
    return check


def varied(value: str) -> bool:
    """More than filler (`xxxx…`, `****`): six different characters or more, and none of them most of it."""
    lowered = value.lower()
    chars = set(lowered)
    return len(chars) >= 6 and max(map(lowered.count, chars)) * 5 <= len(value) * 3


def random_looking(value: str) -> bool:
    """Not a word, a name or a slug: a digit, and either three more or both cases of letters."""
    digits = sum(char.isdigit() for char in value)
    mixed = value.lower() != value != value.upper()
    return varied(value) and (digits >= 4 or (digits >= 1 and mixed))


def has_both_cases(value: str) -> bool:
    """Lower and upper case, as random text has and a slug has not."""
    return varied(value) and value.lower() != value != value.upper()


def has_digit(value: str) -> bool:
    """A digit, as random text of some length has and a word has not."""
    return varied(value) and any(char.isdigit() for char in value)


def has_three_cases(value: str) -> bool:
    """Lower case, upper case and digits, as random base64 of some length has and a hash in hex has not."""
    return has_both_cases(value) and has_digit(value)


def openai_shape(value: str) -> bool:
    """Random, and not another provider's key that also starts with `sk-`."""
    return random_looking(value) and not value.startswith(("sk-ant-", "sk-or-"))


def bearer_value(value: str) -> bool:
    """A credential after `Bearer`, not the next word of a sentence and not a dotted name of some code."""
    if not real(value) or not varied(value) or ("." in value and _identifier(value)):
        return False
    return len(value) >= 24 or has_digit(value)


_FILLER = re.compile(r"[xX*.•#?0_-]+|(.)\1+")
_REFERENCE = re.compile(
    r"""\$[A-Za-z_]\w*$ | \$[({]            # $NAME, ${NAME}, ${{ secrets.NAME }}, $(command)
      | %\(?\w+\)?[%sd]?$                   # %NAME%, %(name)s
      | \{+[^{}]*\}*$ | <[^<>]*>?$          # {{ name }}, <name>
      | \[REDACTED | <[A-Z_]+_\d+>          # what an earlier rule put there
      | [A-Za-z_][\w.]*[(\[]                # os.environ[…, getenv(…
      | (?:process|import\.meta)\.env\b | os\.environ | (?:self|this|config|settings|var|env)\.""",
    re.VERBOSE,
)
_STAND_IN = words_of(
    """
    your my api example sample placeholder changeme change dummy fake redacted removed hidden masked none null nil
    undefined true false todo tbd insert here string str bytes int bool any optional required password passwd
    secret token key value env xxx xxxx abc foo bar
    """
)
_WORDS = re.compile(r"[A-Za-z]+")


def placeholder(value: str) -> bool:
    """Stands for a secret: `$VAR`, `<token>`, `{{x}}`, `xxxx`, `your-api-key`, `os.environ[…]`."""
    if _FILLER.fullmatch(value) or _REFERENCE.match(value):
        return True
    words = [word.lower() for word in _WORDS.findall(value)]
    digits = any(char.isdigit() for char in value)
    mostly = 2 * sum(map(len, words)) >= len(value)
    return bool(words) and mostly and not digits and all(word in _STAND_IN or len(word) < 3 for word in words)


def real(value: str) -> bool:
    """Not a placeholder."""
    return not placeholder(value)


_NAME_PART = r"(?:(?:[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*)\d{0,2}|\d{1,4})"
# A part can be read in several ways, which takes `re` exponential time to rule out.
_IDENTIFIER = Program(rf"_*{_NAME_PART}(?:[_.:/-]+{_NAME_PART})*\z")
_LITERAL = r"\d+(?:\.\d+)*$|0[xX][0-9A-Fa-f]+$|https?://|[./~]+/|\d{4}-\d\d-\d\d"
_CODE = re.compile(rf"\(?[\w.]+[(\[{{]|\(['\"]|[\w.\[\]]+\.[A-Za-z_]\w*$|{_LITERAL}")
_PLAIN = re.compile(_LITERAL)


def _identifier(value: str) -> bool:
    return _IDENTIFIER.at(value.encode("utf-8", "surrogatepass"), 0) is not None


def secret_value(value: str) -> bool:
    """What an assignment to `token` or `key` must look like to be called a secret.

    At least six characters with letters and digits mixed, and no name, path, URL, number, date or piece of
    code.
    """
    # In the order of what they cost: in a log nearly every `key=value` comes here.
    if len(value) < 6 or not any(map(str.isdigit, value)) or _identifier(value):
        return False
    if len(value) < 16 and not any(map(str.isalpha, value)):
        return False
    return varied(value) and not _CODE.match(value) and not placeholder(value)


_SLUG = re.compile(r"[A-Za-z_](?:[-A-Za-z_./:]*[A-Za-z_])?")
_TURN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")
# A name in camel case turns from small to large letters and back less often than random letters do.
_TURNS = 6


def _name(value: str) -> bool:
    return bool(_SLUG.fullmatch(value)) and (len(_TURN.findall(value)) < _TURNS or "_" in value)


def _secretive(value: str) -> bool:
    """Has letters or digits, is no placeholder and no bare name; digits alone count from six on."""
    if value.isascii() and value.isdigit():
        return len(value) >= 6 and varied(value)
    return len(value) >= 4 and any(map(str.isalnum, value)) and not placeholder(value) and not _name(value)


def password_value(value: str) -> bool:
    """What an assignment to `password` must look like: not a placeholder, not a bare name, not code."""
    return _secretive(value) and (value.isdigit() or not _CODE.match(value))


# What people write about a password rather than as one.
_PROSE = words_of(
    """
    a an the your our this that is are must should can cannot may be not enter please type choose set new old current
    user users username password passwords passphrase secret token key required invalid incorrect wrong reset change
    forgot forgotten confirm field account login to for of at least characters name description
    """
)


def phrase_value(value: str) -> bool:
    """A password in quotes: what password_value takes, braces and all, or a pass-phrase that is no sentence."""
    words = value.lower().split()
    if value != value.strip():
        return False
    if len(words) > 1:
        return len(words) > 2 and value[0] != "/" and not _PROSE.intersection(words) and not placeholder(value)
    return (_secretive(value) and not _PLAIN.match(value)) or (value.isalpha() and len(value) >= 16 and real(value))


_PAIRS = {")": "(", "]": "[", "}": "{"}


def tangled(value: str) -> bool:
    """A bracket is closed by one of another kind, which no code does: what is left is a password."""
    opened = []
    for char in value:
        if char in "([{":
            opened.append(char)
        elif char in _PAIRS and opened and opened.pop() != _PAIRS[char]:
            return varied(value)
    return False


def url_value(value: str) -> bool:
    """A password in a URL: anything but a placeholder, and `password` itself is none."""
    return not _FILLER.fullmatch(value) and not _REFERENCE.match(value)


_HOST = re.compile(r"\.(?:com|net|org|io|dev|app|cloud|local|internal|[a-z]{2})(?:$|[/:])")


def provider_value(value: str) -> bool:
    """A key of a provider without a prefix: random letters and digits, no host name, path or identifier."""
    return secret_value(value) and entropy(value) >= 2.8 and "//" not in value and not _HOST.search(value)


def basic_credentials(value: str) -> bool:
    """RFC 7617: base64 of printable `user:password`, with something on either side of the colon."""
    try:
        text = b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except ValueError:
        return False
    user, colon, password = text.partition(":")
    return bool(colon and password) and text.isprintable() and real(password) and len(user) + len(password) > 3
