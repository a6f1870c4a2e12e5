"""Dates inside of numbers."""

from sidecar.text.checks.numbers import compact, exact


def is_day(year: int, month: int, day: int) -> bool:
    """The date exists in the Gregorian calendar."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 29 if month == 2 and leap else 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    return 1 <= month <= 12 and 1 <= day <= longest


def is_date(text: str, order: str = "ymd") -> bool:
    """Six digits of a date in that order; the century is not known, so that a leap day always passes."""
    if len(text) != 6 or not text.isdigit():
        return False
    part = dict(zip(order, (int(text[i : i + 2]) for i in (0, 2, 4)), strict=True))
    return is_day(2000, part["m"], part["d"])


def dashed_date_id(value: str) -> bool:
    """Malaysian MyKad and its like: the first six digits are a date."""
    return bool(exact(value, 12)) and is_date(compact(value)[:6])


def not_a_date_first(value: str) -> bool:
    """Does not begin with a date of six digits, as the numbers of another country do."""
    return not is_date(compact(value)[:6])


# Seconds since 1970, from 2014 to 2030.
_RECENT = range(1_400_000_000, 1_900_000_000)


def no_timestamp(value: str) -> bool:
    """Ten digits that are not the seconds since 1970 of these years."""
    return int(compact(value)) not in _RECENT
