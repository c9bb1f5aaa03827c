"""Convert sizes, durations and shares between text and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from drivelab.core.errors import UserError

_Value = TypeVar("_Value")
_SIZE = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_AMOUNT = {**_SIZE, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_DURATION_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z%]*)\s*")


def _parse(text: object, units: dict[str, float] | dict[str, int], what: str) -> float:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        raise UserError(f"'{text}' is not a {what}; write a number and a unit: {', '.join(units)}")
    return float(match[1]) * units[match[2]]


def parse_size(text: object) -> int:
    """Return the bytes of a size such as `128KiB` or `512B`; raises UserError for others, also for a bare number."""
    value = _parse(text, _SIZE, "size")
    if value != int(value):
        raise UserError(f"'{text}' is not a whole number of bytes")
    return int(value)


def parse_amount(text: object) -> float:
    """Return the bytes of an amount such as `20TB` (powers of ten) or `18TiB`; raises UserError for others."""
    return _parse(text, _AMOUNT, "volume of data")


def parse_duration(text: object) -> float:
    """Return the seconds of a duration such as `60s`, `20min` or `1h`; raises UserError for others, also for zero."""
    value = _parse(text, _DURATION_S, "duration")
    if value == 0:
        raise UserError(f"the duration '{text}' is zero; write a longer one")
    return value


def parse_share(text: object) -> float:
    """Return the fraction of a share such as `75%`, 0 to 1 and above; raises UserError for others."""
    return _parse(text, {"%": 0.01}, "share")


def format_size(size_bytes: int) -> str:
    """Return the shortest exact form: `4KiB` for 4096, `512B` for 512, `1024KiB` for 1048576 (as in the PTS)."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _SIZE[unit]
        if size_bytes >= factor and size_bytes % factor == 0 and (unit != "MiB" or size_bytes != factor):
            return f"{size_bytes // factor}{unit}"
    return f"{size_bytes}B"


def format_amount(size_bytes: float) -> str:
    """Return an amount for people, with three digits or whole units: `7.45 TiB`, `512 KiB`, `1,010 MiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes >= 0.9995 * _SIZE[unit]:
            amount = size_bytes / _SIZE[unit]
            return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:,.0f} {unit}"
    return f"{size_bytes:.0f} B"


def format_duration(seconds: float) -> str:
    """Return a duration for people: `45 s`, `3 min`, `3 min 05 s`, `2 h`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest_s = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s:02d} s" if rest_s else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"


def format_factor(factor: float) -> str:
    """Return a factor for people, with three digits and no exponent: `1.33`, `115`, `11,500`."""
    rounded = float(f"{factor:.3g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:.3g}"


def scaled(values: Sequence[float], unit: str) -> tuple[list[float], str]:
    """Return values of one unit in the largest unit of time in which none is below 1: ms instead of µs."""
    divisor, unit = time_scale(values, unit)
    return [value / divisor for value in values], unit


def time_scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """Return the divisor and the unit of `scaled`."""
    divisor = 1.0
    for larger in ("ms", "s"):
        if unit in ("µs", "ms") and values and min(values) >= 1000 * divisor:
            divisor, unit = 1000 * divisor, larger
    return divisor, unit


def format_percentage(value_pct: float, signed: bool = False) -> str:
    """Return a percentage for people, without `%`: `62`, `3.1`, `0.42`; `signed` adds a plus or a true minus.

    A value that rounds to zero has no sign.
    """
    size = abs(value_pct)
    shown = f"{size:,.{0 if size >= 9.95 else 1 if size >= 0.995 else 2}f}"
    if not float(shown.replace(",", "")):
        return shown
    sign = "\N{MINUS SIGN}" if value_pct < 0 else "+" if signed else ""
    return sign + shown


def counted(number: int, thing: str) -> str:
    """Return a count with its noun: `1 drive`, `3 drives`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def format_span(least: _Value, most: _Value, words: Callable[[_Value], str]) -> str:
    """Return `LEAST to MOST` in words, `up to MOST` if the least is 0, or one of them if both are the same in words."""
    low, high = words(least), words(most)
    if low == high:
        return low
    return f"{low} to {high}" if least else f"up to {high}"


def some(names: Sequence[str], most: int) -> str:
    """Return at most `most` names, then the number of others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
