"""What a provider says about waiting, and how long we wait without."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.upstream.waits import MAX_STATED, Backoff, read_reset, stated

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


def said(**headers: str) -> float | None:
    return stated([(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()], NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 2 ", 2.0),
        ("1.5", 1.5),
        ("7200", 7200.0),
        (format_datetime(at(2), usegmt=True), 2.0),
        (at(90).strftime("%A, %d-%b-%y %H:%M:%S GMT"), 90.0),  # RFC 850, which RFC 9110 still wants read
        (at(5).strftime("%a %b %e %H:%M:%S %Y"), 5.0),  # asctime
        ("0", None),
        ("-5", None),
        ("+5", None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("9" * 15, None),
        ("9" * 400, None),
        ("86401", None),
        (format_datetime(at(-10), usegmt=True), None),
        (format_datetime(at(100 * 86400), usegmt=True), None),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
        ("١٢", None),
    ],
)
def test_retry_after(value: str, seconds: float | None):
    assert said(retry_after=value) == seconds


def test_milliseconds_are_more_exact():
    assert said(retry_after="1", retry_after_ms="350") == 0.35
    assert said(retry_after="1", retry_after_ms="0") == 1.0
    assert said(retry_after_ms="later") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("6m0s", 360.0),
        ("1s", 1.0),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("2m59.56s", 179.56),
        ("17", 17.0),
        (str(int(NOW) + 30), 30.0),
        (str(int(NOW * 1000) + 30_000), 30.0),
        (at(45).strftime("%Y-%m-%dT%H:%M:%SZ"), 45.0),
        (at(45).isoformat(), 45.0),
        ("6m0", None),
        ("m", None),
        ("", None),
    ],
)
def test_resets(value: str, seconds: float | None):
    read = read_reset(value, NOW)
    assert read == (None if seconds is None else pytest.approx(seconds, abs=1e-3))


def test_only_a_limit_that_is_used_up_says_when_to_come_back():
    ours = {"x_ratelimit_reset_requests": "1s", "x_ratelimit_reset_tokens": "6m0s"}
    assert said(**ours, x_ratelimit_remaining_requests="0", x_ratelimit_remaining_tokens="900") == 1.0
    assert said(**ours, x_ratelimit_remaining_requests="0", x_ratelimit_remaining_tokens="0") == 360.0
    assert said(**ours, x_ratelimit_remaining_requests="3", x_ratelimit_remaining_tokens="900") is None
    assert said(**ours) == 360.0
    # What Azure sends where it knows nothing.
    assert said(x_ratelimit_remaining_tokens="-1", x_ratelimit_reset_tokens="0") is None


def test_anthropics_resets():
    reset = at(20).strftime("%Y-%m-%dT%H:%M:%SZ")
    later = at(50).strftime("%Y-%m-%dT%H:%M:%SZ")
    limits = {"anthropic_ratelimit_requests_reset": reset, "anthropic_ratelimit_input_tokens_reset": later}
    used = {"anthropic_ratelimit_requests_remaining": "0", "anthropic_ratelimit_input_tokens_remaining": "10"}
    assert said(**limits, **used) == 20.0
    assert said(**limits, **used, retry_after="7") == 7.0


def test_retry_after_comes_before_resets_and_nonsense_in_it_does_not():
    assert said(retry_after="3", x_ratelimit_reset_requests="1s") == 3.0
    assert said(retry_after="0", x_ratelimit_reset_requests="1s") == 1.0


NAMES = [
    *(b"retry-after", b"retry-after-ms", b"x-ratelimit-reset", b"x-ratelimit-reset-tokens", b"ratelimit-reset"),
    *(b"anthropic-ratelimit-tokens-reset", b"anthropic-ratelimit-tokens-remaining"),
]
VALUES = st.binary(max_size=40) | st.from_regex(rb"-?[0-9]{0,20}(\.[0-9]+)?(ms|s|m|h)?", fullmatch=True)


@given(st.lists(st.tuples(st.sampled_from(NAMES), VALUES)))
def test_whatever_a_provider_says_is_sane_or_nothing(headers: list[tuple[bytes, bytes]]):
    seconds = stated(headers, NOW)
    assert seconds is None or 0 < seconds <= MAX_STATED


def test_backoff_grows_to_its_cap():
    backoff = Backoff(0.5, 2.0, 3.0, jitter=False)
    assert [backoff.delay(n, lambda: 0.0) for n in (1, 2, 3, 4, 5, 1000)] == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_jitter_takes_all_of_the_delay():
    backoff = Backoff(0.5, 2.0, 60.0)
    assert backoff.delay(3, lambda: 0.0) == 0.0
    assert backoff.delay(3, lambda: 0.5) == 1.0
    assert backoff.delay(3, lambda: 0.999) == pytest.approx(1.998)


def test_who_was_told_a_time_comes_back_not_before_it_and_not_all_at_once():
    backoff = Backoff(0.5, 2.0, 60.0)
    assert backoff.after(2.0, lambda: 0.0) == 2.0
    assert backoff.after(2.0, lambda: 1.0) == 2.2
    assert backoff.after(50.0, lambda: 1.0) == 50.5
    assert Backoff(jitter=False).after(2.0, lambda: 1.0) == 2.0
