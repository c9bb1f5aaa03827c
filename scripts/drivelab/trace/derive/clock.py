"""Wall-clock times in nanoseconds; datetime resolves only microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_ns(text: str) -> int:
    """Return nanoseconds since 1970 of an ISO 8601 time, by default in UTC.

    Raises ValueError for other texts.
    """
    split = re.match(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d+))?(.*)$", text.strip())
    if split is None:
        raise ValueError(f"'{text}' is not an ISO 8601 date and time")
    moment = datetime.fromisoformat(split[1] + (split[3] or "+00:00"))
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    return int(whole) * 10**9 + int((split[2] or "").ljust(9, "0")[:9])


def moment(time_ns: int) -> str:
    """Format as ISO 8601 in UTC with three, six or nine decimals, as needed."""
    seconds, rest = divmod(time_ns, 10**9)
    digits = f"{rest:09}"
    while len(digits) > 3 and digits.endswith("000"):
        digits = digits[:-3]
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S") + f".{digits}+00:00"
