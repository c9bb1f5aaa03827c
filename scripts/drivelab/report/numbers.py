"""Readable numbers, times and metrics. A missing value reads "not recorded", never a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from drivelab.core.units import format_duration, format_percentage, format_size, scaled

MISSING = "not recorded"
MINUS, DASH, TIMES = "\u2212", "\u2013", "\u00d7"
_NBSP = "\u00a0"

_METRICS = {
    "iops": ("IOPS", "IOPS"),
    "read_iops": ("read IOPS", "IOPS"),
    "write_iops": ("write IOPS", "IOPS"),
    "bandwidth_mib_s": ("throughput", "MiB/s"),
    "read_bandwidth_mib_s": ("read throughput", "MiB/s"),
    "write_bandwidth_mib_s": ("write throughput", "MiB/s"),
    "access_time_us": ("access time", "µs"),
    "response_time_us": ("response time", "µs"),
    "p999_response_us": ("99.9 % response time", "µs"),
    "score": ("score", ""),
    "mean_latency_us": ("mean latency", "µs"),
    "read_mean_latency_us": ("mean read latency", "µs"),
    "write_mean_latency_us": ("mean write latency", "µs"),
    "p50_latency_us": ("median latency", "µs"),
    "p90_latency_us": ("90 % latency", "µs"),
    "p99_latency_us": ("99 % latency", "µs"),
    "p999_latency_us": ("99.9 % latency", "µs"),
    "p9999_latency_us": ("99.99 % latency", "µs"),
    "p99999_latency_us": ("99.999 % latency", "µs"),
    "p999999_latency_us": ("99.9999 % latency", "µs"),
    "max_latency_us": ("maximum latency", "µs"),
    "duration_s": ("duration", "s"),
    "figure_of_merit": ("figure of merit", ""),
    "iops_per_watt": ("IOPS per watt", "IOPS/W"),
    "iops_within_limit": ("IOPS within the limit", "IOPS"),
    "best_bandwidth_mb_s": ("best throughput", "MB/s"),
    "best_mean_latency_us": ("lowest mean latency", "µs"),
}
_ORDER = {metric: place for place, metric in enumerate(_METRICS)}
_UNITS = {"us": "µs", "ms": "ms", "ns": "ns", "s": "s", "mib_s": "MiB/s", "pct": "%"}


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT, NA, an empty string or `not recorded`."""
    return value in ("", MISSING) if isinstance(value, str) else value is None or _is_nan(value)


def _is_nan(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array
        return False


def text(value: Any) -> str:
    """Return a value as text, or "not recorded"."""
    return MISSING if is_missing(value) else str(value)


def number(value: Any) -> str:
    """Format with four significant digits, whole numbers in full: `61,265`, `485.2`, `0.0123`."""
    if is_missing(value):
        return MISSING
    amount = float(value)
    if math.isinf(amount):
        return "∞" if amount > 0 else f"{MINUS}∞"
    size = abs(amount)
    if size >= 999.95 or amount == int(amount):
        shown = f"{size:,.0f}"
    elif size >= 1:
        shown = f"{size:.{3 - int(math.log10(size))}f}"
    elif size >= 1e-4:
        shown = f"{size:.{2 - math.floor(math.log10(size))}f}"
    else:
        shown = f"{size:.2e}"
    return f"{MINUS if amount < 0 and float(shown.replace(',', '')) else ''}{shown}"


def rounded(value: Any) -> str:
    """Format with three significant digits for prose: `61,300`, `485`, `12.8`."""
    if is_missing(value) or not math.isfinite(value):
        return number(value)
    amount = float(f"{float(value):.3g}")
    exact = amount == int(amount) or abs(amount) < 1e-4
    return number(amount) if exact else f"{amount:#.3g}".removesuffix(".").replace("-", MINUS)


def percent(value: Any, signed: bool = False) -> str:
    """Format a percentage: `62 %`, `3.1 %`, `0.42 %`; with `signed`, add a plus or minus."""
    if is_missing(value):
        return MISSING
    return f"{format_percentage(float(value), signed)}{_NBSP}%"


def unit_of(metric: str, unit: Any = None) -> str:
    """Return the printed unit: the one of a known metric, else `unit`."""
    if metric in _METRICS:
        return _METRICS[metric][1]
    return "" if is_missing(unit) else _UNITS.get(str(unit), str(unit))


def metric_name(metric: str) -> str:
    """Return the name of a metric in words."""
    return _METRICS[metric][0] if metric in _METRICS else metric.replace("_", " ")


def heading(metric: str, unit: Any = None) -> str:
    """Return the heading of a column: `IOPS`, or `mean latency, µs`."""
    name, shown = metric_name(metric), unit_of(metric, unit)
    return name if not shown or shown == name else f"{name}, {shown}"


def capital(phrase: str) -> str:
    """Capitalise the first letter only."""
    return phrase[:1].upper() + phrase[1:]


def metric_order(metric: str) -> tuple[int, str]:
    """Return a sort key: known metrics in the usual order, then others by name."""
    return _ORDER.get(metric, len(_ORDER)), metric


def quantity(value: Any, unit: str) -> str:
    """Format a number and its unit."""
    return number(value) if is_missing(value) or not unit else f"{number(value)}{_NBSP}{unit}"


def quantities(values: Sequence[Any], unit: str, show: Callable[[Any], str] = number) -> list[str]:
    """Format values of one unit together: `383 ms` and `410 ms` instead of microseconds."""
    known = [float(value) for value in values if not is_missing(value)]
    shown, unit = scaled(known, unit)
    texts = iter(f"{show(value)}{_NBSP * bool(unit)}{unit}" for value in shown)
    return [MISSING if is_missing(value) else next(texts) for value in values]


def size(size_bytes: Any) -> str:
    """Format bytes: `64 MiB` if that is exact and small, else decimal as on a drive's label."""
    if is_missing(size_bytes):
        return MISSING
    amount = int(size_bytes)
    if 0 < amount < 16 << 30 and amount % 512 == 0 and len(exact := format_size(amount)) <= 7:
        return re.sub(r"(?<=\d)(?=\D)", _NBSP, exact)
    for power, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= power:
            return f"{number(amount / power)}{_NBSP}{unit}"
    return f"{amount}{_NBSP}B"


def amount(size_bytes: Any) -> str:
    """Format transferred bytes with binary prefixes, comparable within a column: `256 MiB`, `66.09 MiB`."""
    if is_missing(size_bytes):
        return MISSING
    for power, unit in ((50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes >= 1 << power:
            return f"{number(size_bytes / (1 << power))}{_NBSP}{unit}"
    return f"{int(size_bytes)}{_NBSP}B"


def duration(seconds: Any) -> str:
    """Format seconds: `12.4 s`, and from a minute as `format_duration`."""
    if is_missing(seconds):
        return MISSING
    whole = round(float(seconds))
    if whole < 60:
        return f"{round(float(seconds), 2):g}{_NBSP}s"
    return format_duration(whole).replace(" ", _NBSP)


def moment(value: Any) -> str:
    """Format a time stamp or ISO 8601 text in UTC to the minute; return other text unchanged."""
    if is_missing(value):
        return MISSING
    try:
        when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return str(value)
    when = when.astimezone(UTC) if when.tzinfo else when
    return f"{when:%Y-%m-%d %H:%M}{_NBSP}UTC"


def share(value: Any) -> str:
    """Format a fraction as a percentage; return text such as `75%` unchanged."""
    if is_missing(value) or isinstance(value, str):
        return text(value)
    return f"{number(100 * float(value))}{_NBSP}%"


def names(items: list[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else MISSING
