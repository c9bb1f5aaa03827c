"""Readable numbers, times, metrics and workloads. A missing value reads "not recorded", never a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from drivelab.core.units import format_duration, format_percentage, format_size, parse_size, scaled

MISSING = "not recorded"
MINUS, DASH, TIMES = "\u2212", "\u2013", "\u00d7"
NBSP = "\u00a0"

_NAMES = {
    "iops": "IOPS", "read_iops": "read IOPS", "write_iops": "write IOPS", "bandwidth_mib_s": "throughput",
    "read_bandwidth_mib_s": "read throughput", "write_bandwidth_mib_s": "write throughput",
    "access_time_us": "access time", "response_time_us": "response time", "p999_response_us": "99.9 % response time",
    "score": "score", "mean_latency_us": "mean latency", "read_mean_latency_us": "mean read latency",
    "write_mean_latency_us": "mean write latency", "p50_latency_us": "median latency", "p90_latency_us": "90 % latency",
    "p99_latency_us": "99 % latency", "p999_latency_us": "99.9 % latency", "p9999_latency_us": "99.99 % latency",
    "p99999_latency_us": "99.999 % latency", "p999999_latency_us": "99.9999 % latency",
    "max_latency_us": "maximum latency", "duration_s": "duration", "figure_of_merit": "figure of merit",
    "iops_per_watt": "IOPS per watt", "iops_within_limit": "IOPS within the limit",
    "best_bandwidth_mb_s": "best throughput", "best_mean_latency_us": "lowest mean latency",
}  # fmt: skip
"""Names of metrics, in the usual order."""
_ORDER = {metric: place for place, metric in enumerate(_NAMES)}
_BY_ENDING = {"_us": "µs", "_mib_s": "MiB/s", "_mb_s": "MB/s", "_s": "s", "iops": "IOPS", "_limit": "IOPS",
              "_per_watt": "IOPS/W"}  # fmt: skip
"""Units of these metrics, by the end of their column's name."""
_UNITS = {"us": "µs", "ms": "ms", "ns": "ns", "s": "s", "mib_s": "MiB/s", "pct": "%"}


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT, NA, an empty string or `not recorded`."""
    if value is None or isinstance(value, str):
        return value in (None, "", MISSING)
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
    return f"{format_percentage(float(value), signed)}{NBSP}%"


def unit_of(metric: str, unit: Any = None) -> str:
    """Return the printed unit: the one of a known metric, else `unit`."""
    if metric in _NAMES:
        return next((known for end, known in _BY_ENDING.items() if metric.endswith(end)), "")
    return "" if is_missing(unit) else _UNITS.get(str(unit), str(unit))


def metric_name(metric: str) -> str:
    """Return the name of a metric in words."""
    return _NAMES.get(metric, metric.replace("_", " "))


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
    return number(value) if is_missing(value) or not unit else f"{number(value)}{NBSP}{unit}"


def quantities(values: Sequence[Any], unit: str, show: Callable[[Any], str] = number) -> list[str]:
    """Format values of one unit together: `383 ms` and `410 ms` instead of microseconds."""
    known = [float(value) for value in values if not is_missing(value)]
    shown, unit = scaled(known, unit)
    texts = iter(f"{show(value)}{NBSP * bool(unit)}{unit}" for value in shown)
    return [MISSING if is_missing(value) else next(texts) for value in values]


def size(size_bytes: Any) -> str:
    """Format bytes: `64 MiB` if that is exact and small, else decimal as on a drive's label."""
    if is_missing(size_bytes):
        return MISSING
    whole = int(size_bytes)
    if 0 < whole < 16 << 30 and whole % 512 == 0 and len(exact := format_size(whole)) <= 7:
        return re.sub(r"(?<=\d)(?=\D)", NBSP, exact)
    return _in_largest(whole, 1000, "kMGTP", "B")


def amount(size_bytes: Any) -> str:
    """Format transferred bytes with binary prefixes, comparable within a column: `256 MiB`, `66.09 MiB`."""
    return MISSING if is_missing(size_bytes) else _in_largest(size_bytes, 1024, "KMGTP", "iB")


def _in_largest(size_bytes: float, base: int, prefixes: str, suffix: str) -> str:
    """Format bytes in the largest unit that they reach."""
    for power, prefix in reversed(list(enumerate(prefixes, start=1))):
        if size_bytes >= base**power:
            return f"{number(size_bytes / base**power)}{NBSP}{prefix}{suffix}"
    return f"{int(size_bytes)}{NBSP}B"


def duration(seconds: Any) -> str:
    """Format seconds: `12.4 s`, and from a minute as `format_duration`."""
    if is_missing(seconds):
        return MISSING
    whole = round(float(seconds))
    if whole < 60:
        return f"{round(float(seconds), 2):g}{NBSP}s"
    return format_duration(whole).replace(" ", NBSP)


def moment(value: Any) -> str:
    """Format a time stamp or ISO 8601 text in UTC to the minute; return other text unchanged."""
    if is_missing(value):
        return MISSING
    try:
        when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return str(value)
    when = when.astimezone(UTC) if when.tzinfo else when
    return f"{when:%Y-%m-%d %H:%M}{NBSP}UTC"


def share(value: Any) -> str:
    """Format a fraction as a percentage; return text such as `75%` unchanged."""
    if is_missing(value) or isinstance(value, str):
        return text(value)
    return f"{number(100 * float(value))}{NBSP}%"


def names(items: list[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else MISSING


_NOTATION = re.compile(
    r"(?P<pattern>RND|SEQ) (?P<least>\d+[KMGT]?i?B)(-(?P<most>\d+[KMGT]?i?B))?(?P<mix> mix)? "
    r"(?P<read>\d+)/(?P<write>\d+)(?P<rest>((?! T\d+Q).)*)( T(?P<threads>\d+)Q(?P<depth>\d+))?(?P<turn>.*)"
)
_IN_TEXT = re.compile(r"\b(?:RND|SEQ) \S+ \d+/\d+(?: T\d+Q\d+)?")
_DEMAND = re.compile(r"\bT\d+Q\d+\b")
_THREADS = re.compile(r"(, QD\d+) \(\d+ threads . \d+\)")
"""The split of a queue depth over threads."""


def workload_words(label: str) -> str:
    """Spell out a cell label: `RND 4KiB 0/100 T1Q16` as `random write 4 KiB, QD16`.

    A label in another notation, or with a second workload beside it, is returned unchanged.
    """
    match = _NOTATION.fullmatch(label)
    if match is None or ", beside " in label:
        return label
    access = "random" if match["pattern"] == "RND" else "sequential"
    mix = f"{match['read']}/{match['write']}"
    direction = {"100/0": "read", "0/100": "write"}.get(mix, f"{mix} read/write")
    sizes = " to ".join(amount(parse_size(size)) for size in (match["least"], match["most"]) if size)
    demand = ""
    if match["threads"]:
        threads, depth = int(match["threads"]), int(match["depth"])
        demand = f", QD{threads * depth}" + (f" ({threads} threads {TIMES} {depth})" if threads > 1 else "")
    return f"{access} {direction} {sizes}{match['mix'] or ''}{match['rest']}{demand}{match['turn']}"


def spelled_out(text: str) -> str:
    """Return a text with the workloads in it in words: `round 1, random read 4 KiB, QD8`."""
    return _IN_TEXT.sub(lambda match: workload_words(match[0]), text)


def loaded(label: str, load: str | None) -> str:
    """Return a cell label with threads and queue depth, such as `T1Q8`, unless it has them already."""
    if not load or _DEMAND.search(label):
        return label
    workload, comma, turn = label.partition(",")
    return f"{workload} {load}{comma}{turn}"


def brief_words(label: str, load: str | None = None) -> str:
    """Return a workload in words with its queue depth, without the split over threads."""
    return _THREADS.sub(r"\1", workload_words(loaded(label, load)))


def value_words(label: str, metric: str, load: str | None = None, joint: str = ": ") -> str:
    """Return a workload in words, with the metric unless the unit says it; spaces may break."""
    words = workload_words(loaded(label, load)).replace("\u00a0", " ")
    return words if metric in ("iops", "bandwidth_mib_s") else f"{words}{joint}{metric_name(metric)}"
