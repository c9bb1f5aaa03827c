"""Names and units of the tables' columns, and numbers, as readers of an axis need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drivelab.core.units import format_duration

KIB = 1024
DIGITS = 5
"""Digits of a value with a fraction, more than a picture shows; whole numbers have all their digits."""
_TIMES_US = {"µs": 1.0, "ms": 1e3, "s": 1e6}
_DURATIONS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SHORT_S = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}
_SIZES = {unit: 2.0 ** (10 * place) for place, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))}
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SCORE_UNIT = "√(MiB/s · 1/s)"
"""A score is a geometric mean; its unit contains both factors."""

_NAMES = {
    "iops": "I/O rate",
    "read_iops": "Read rate",
    "write_iops": "Write rate",
    "bandwidth_mib_s": "Bandwidth",
    "read_bandwidth_mib_s": "Read bandwidth",
    "write_bandwidth_mib_s": "Write bandwidth",
    "mean_latency_us": "Mean latency",
    "read_mean_latency_us": "Mean read latency",
    "write_mean_latency_us": "Mean write latency",
    "max_latency_us": "Maximum latency",
    "access_time_us": "Access time",
    "score": "Score",
    "p50_latency_us": "Median latency",
    "p99_latency_us": "99 % latency",
    "p999_latency_us": "99.9 % latency",
    "p9999_latency_us": "99.99 % latency",
    "p99999_latency_us": "99.999 % latency",
    "p999999_latency_us": "99.9999 % latency",
}
_DERIVED = {
    "p90_latency_us": "90 % latency",
    "best_bandwidth_mb_s": "Best bandwidth",
    "best_mean_latency_us": "Best mean latency",
    "iops_per_watt": "I/O rate per watt",
    "iops_within_limit": "I/O rate within the limit",
    "figure_of_merit": "figure of merit",
    "response_time_us": "response time",
    "p999_response_us": "99.9 % response time",
    "duration_s": "duration",
}
"""Names of metrics that are only compared and have no axis."""
AXES = frozenset(_NAMES)
"""Metrics that `quantity` knows."""


@dataclass(frozen=True)
class Quantity:
    """A quantity in the unit of an axis: a stored value divided by `divisor` has that unit."""

    name: str
    unit: str
    divisor: float = 1.0

    @property
    def label(self) -> str:
        """Label of the axis with the unit, for example `Mean latency (ms)`."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def metric_name(metric: str) -> str:
    """Return the name of a metric column without its unit; raises ValueError for other columns."""
    if metric not in _NAMES:
        raise ValueError(f"'{metric}' is not a metric that figures know; known are {', '.join(_NAMES)}")
    return _NAMES[metric]


def short_name(metric: str) -> str:
    """Return the name of a metric within a sentence; unknown metrics of applications keep their name."""
    name = _NAMES.get(metric) or _DERIVED.get(metric, metric)
    return name[0].lower() + name[1:] if name[0] in "ABMS" else name


def quantity(metric: str, largest: float) -> Quantity:
    """Return the quantity of a metric column; `largest`, in the column's unit, decides the unit shown.

    Raises ValueError for a column that is not a metric.
    """
    name = metric_name(metric)
    if metric.endswith("_us"):
        return Quantity(name, *_largest_unit(_TIMES_US, largest, 2.0))
    if metric.endswith("_mib_s"):
        return Quantity(name, "GiB/s", float(KIB)) if largest >= 20 * KIB else Quantity(name, "MiB/s")
    return Quantity(name, _SCORE_UNIT if metric == "score" else "IOPS")


def elapsed(longest_s: float, name: str = "Time since the start") -> Quantity:
    """Return the quantity of an axis of time that ends at `longest_s`."""
    if 0 < longest_s < 1:
        fitting = [unit for unit, divisor in _SHORT_S.items() if longest_s < 2000 * divisor]
        return Quantity(name, fitting[0], _SHORT_S[fitting[0]])
    return Quantity(name, *_largest_unit(_DURATIONS_S, longest_s, 3.0))


def volume(largest_bytes: float, name: str = "Written by the host") -> Quantity:
    """Return the quantity of an axis of bytes that ends at `largest_bytes`."""
    return Quantity(name, *_largest_unit(_SIZES, largest_bytes, 2.0))


def format_number(value: float) -> str:
    """Return three digits with k, M or G, for ticks and annotations: 61265 is `61.3k`."""
    suffix, factor = _largest_unit(_THOUSANDS, value, 0.9995)
    return f"{_three_digits(value / factor)}{suffix}"


def format_exact(value: float) -> str:
    """Return a number with enough digits to verify a calculation: 61265.2 is `61,265`, 56.6767 is `56.68`."""
    if abs(value) >= 1e7:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def grouped(value: float) -> str:
    """Return a number with thousands separators: all digits of a whole number, else `DIGITS` digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.{DIGITS}g}"


def with_minus(text: str) -> str:
    """Return a formatted number with a true minus sign, as wide as the plus."""
    return text.replace("-", "\N{MINUS SIGN}")


def format_latency(latency_us: float, digits: Callable[[float], str] | None = None) -> str:
    """Return a latency with its unit and three digits, or as `digits` formats it: 1250 is `1.25 ms`."""
    unit, divisor = _largest_unit(_TIMES_US, latency_us, 0.9995)
    return f"{(digits or _three_digits)(latency_us / divisor)} {unit}"


def format_time(seconds: float) -> str:
    """Return a duration with its unit, also below a second: `2 min 05 s`, `1.25 ms`, `40 ns`."""
    if seconds >= 60:
        return format_duration(seconds)
    return format_latency(1e6 * seconds) if seconds >= 1e-6 else f"{seconds * 1e9:.0f} ns"


def format_mix(read_share_pct: float) -> str:
    """Return a read/write mix as the PTS writes it: 65 is `65/35`."""
    return f"{read_share_pct:g}/{100 - read_share_pct:g}"


@dataclass(frozen=True)
class Texts:
    """How an axis writes its values: at its ticks, and with all digits for a reader who points at a mark."""

    short: Callable[[float], str]
    exact: Callable[[float], str] | None = None
    """Missing if the number with the unit of the axis is enough."""


NUMBER = Texts(lambda value: with_minus(format_number(value)))
PLAIN = Texts("{:g}".format)
SIGNED = Texts(lambda value: with_minus(f"{value:+,.4g}") if value else "0")
LATENCY = Texts(format_latency, lambda latency_us: format_latency(latency_us, grouped))
BLOCK = Texts(lambda size_bytes: f"{size_bytes / KIB:g}", lambda size_bytes: f"{grouped(size_bytes / KIB)} KiB")


def _largest_unit(units: Mapping[str, float], largest: float, at_least: float) -> tuple[str, float]:
    """Return the largest unit in which `largest` is `at_least` this number, else the smallest unit."""
    fitting = [unit for unit in units.items() if abs(largest) >= at_least * unit[1]]
    return fitting[-1] if fitting else next(iter(units.items()))


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"
