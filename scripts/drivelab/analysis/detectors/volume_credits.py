"""Detect the credits of a volume: burst rate, base rate, bucket, and how fast idle time refills it."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.analysis.values.bursts import Burst, Credits, bursts, credits_of
from drivelab.core.units import format_amount, format_duration

_MIB = 1 << 20


def volume_credits(recording: Recording) -> Iterator[Finding]:
    """Find burst rate, base rate, bucket and refill rate, a row for each; in MiB for sequential loads, else in I/Os.

    Pure writes that slow down are a matter of the detector of write caches, unless idle time brings back exactly what
    the base rate earns.
    """
    found = bursts(recording.cells)
    if not found:
        return
    first, writes = found[0], found[0].read_share_pct == 0
    spent = credits_of(found)
    if writes and (spent is None or not spent.is_bucket):
        return
    units = _Units(first, str(recording.cells["pattern"].iloc[0]) == "sequential")
    if spent is None:
        seconds = format_duration(first.seconds.sum())
        words = f"the rate does not fall in {seconds}: no credits, or too few or too many for this load"
        yield Finding(False, words, first.label, units.metric)
        return
    if not spent.is_plausible:
        words = (
            f"the rate falls from {units.rate(spent.fall.fast_mib_s * _MIB)} to "
            f"{units.rate(spent.fall.slow_mib_s * _MIB)}, but not as credits run out and come back: look for heat, a "
            "cache, or others on the volume"
        )
        yield Finding(False, words, first.label, units.metric)
        return
    yield from _rows(spent, units, first.label, writes)


def _rows(spent: Credits, units: _Units, label: str, writes: bool) -> Iterator[Finding]:
    fall, refill = spent.fall, spent.refill_bytes_s
    for rate, words in (
        (fall.fast_mib_s * _MIB, f"bursts at {{}} for {format_duration(fall.fast_s)}"),
        (fall.slow_mib_s * _MIB, "without credits, {} remain"),
    ):
        yield Finding(True, words.format(units.rate(rate)), label, units.metric, rate / units.bytes, unit=units.per_s)
    words = f"the first burst used {units.amount(spent.bucket_bytes)} of credit"
    yield Finding(True, words, label, units.metric, spent.bucket_bytes / units.bytes, unit=units.name)
    if refill is None:
        words = "no idle time brought back a part of the credits; a drive that slows down as it gets hot looks the same"
        yield Finding(True, words, label, units.metric, unit=units.per_s)
        return
    full = format_duration(spent.bucket_bytes / refill)
    base = "the base rate" if spent.at_base_rate else "which is not the base rate"
    words = f"idle time brings back credits at {units.rate(refill)}, {base}; all of them take {full}"
    if writes:
        words += "; a write cache that empties at this rate looks the same"
    yield Finding(True, words, label, units.metric, refill / units.bytes, unit=units.per_s)


class _Units:
    """How amounts and rates are worded: in MiB, or in I/Os of the load's size."""

    def __init__(self, burst: Burst, in_bytes: bool) -> None:
        self._in_bytes = in_bytes
        self.bytes = _MIB if in_bytes else burst.io_bytes
        self.metric = "bandwidth_mib_s" if in_bytes else "iops"
        self.name, self.per_s = ("MiB", "MiB/s") if in_bytes else ("I/Os", "IOPS")

    def rate(self, bytes_s: float) -> str:
        """Return a rate for people, such as `3,000 IOPS`."""
        rate = bytes_s / self.bytes
        return f"{rate:.3g} {self.per_s}" if rate < 999.5 else f"{float(f'{rate:.3g}'):,.0f} {self.per_s}"

    def amount(self, amount_bytes: float) -> str:
        """Return an amount for people, such as `5,400,000 I/Os`."""
        return (
            format_amount(amount_bytes) if self._in_bytes else f"{float(f'{amount_bytes / self.bytes:.3g}'):,.0f} I/Os"
        )


DETECTOR = Declared("volume credits", volume_credits, place=17)
