"""Parse and format times and byte ranges of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from drivelab.errors import UserError
from drivelab.trace.schema import OPERATIONS
from drivelab.units import format_size, parse_duration, parse_size

_ZERO = re.compile(r"\s*0+(\.0*)?\s*(us|ms|s|min|h|d)?\s*")
_WHOLE = re.compile(r"\s*\d+\s*")


def time_ns(text: str) -> int:
    """Parse a time such as `1.5s`, `200ms`, `3min` or `0` to ns; raise UserError."""
    if _ZERO.fullmatch(text):
        return 0
    return round(parse_duration(text) * 1e9)


def byte_range(text: str) -> tuple[int, int | None]:
    """Parse `FROM..TO` to the first byte and the byte after the last.

    FROM and TO are sizes or numbers of bytes; either may be omitted. Raises UserError for other texts and empty ranges.
    """
    first, dots, last = text.partition("..")
    if not dots or not (first.strip() or last.strip()):
        raise UserError(f"range '{text}' is not FROM..TO; write it like 0..1GiB, 4096.. or ..512MiB")
    low = _bytes(first) if first.strip() else 0
    high = _bytes(last) if last.strip() else None
    if high is not None and high <= low:
        raise UserError(f"range '{text}' is empty: it ends before it begins; give a larger end")
    return low, high


def _bytes(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else parse_size(text.strip())


def operations(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse lists such as `read,write`, each operation once; raise UserError."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in OPERATIONS:
            raise UserError(f"operation '{name}' is unknown; choose from {', '.join(OPERATIONS)}")
    return tuple(dict.fromkeys(names))


def show_ns(time_ns: int) -> str:
    """Format a time exactly: `1.5 s`, `200 ms`, `3.25 us`."""
    if not time_ns:
        return "0 s"
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(time_ns) >= factor:
            whole, rest = divmod(time_ns, factor)
            digits = f"{rest:0{len(str(factor)) - 1}}".rstrip("0")
            return f"{whole}.{digits} {unit}" if digits else f"{whole} {unit}"
    return f"{time_ns} ns"


def show_range(low: int, high: int | None) -> str:
    """Format a byte range as `byte_range` parses it."""
    return f"{format_size(low)}.." + ("" if high is None else format_size(high))
