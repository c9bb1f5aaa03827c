"""Detect a write cache: its size, both rates, and the idle time until it is free again."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.analysis.values.bursts import BACK, FULL, bursts, find_fall, share_back
from drivelab.core.units import format_amount

_MIB = 1 << 20


def slc_cache(recording: Recording) -> Iterator[Finding]:
    """Find the volume in MiB that is written at the higher rate, and how much of it is free after each idle time."""
    found = bursts(recording.cells)
    if not found or found[0].read_share_pct > 0:
        return
    first, *others = found
    fall = find_fall(first.moved, first.seconds)
    if fall is None:
        words = f"writes keep their rate for {format_amount(first.moved.sum())}: no cache, or a larger one"
        yield Finding(False, words, first.label, "bandwidth_mib_s")
        return
    words = (
        f"{format_amount(fall.fast_bytes)} are written at {fall.fast_mib_s:.3g} MiB/s, the rest at "
        f"{fall.slow_mib_s:.3g} MiB/s"
    )
    yield Finding(True, words, first.label, "bandwidth_mib_s", fall.fast_bytes / _MIB, unit="MiB")
    for burst in others:
        share = share_back(burst, fall)
        state = "is back" if share >= BACK else "is full" if share <= FULL else f"is {share:.0%} free"
        words = f"after {burst.wait} of idle time the cache {state}"
        yield Finding(True, words, burst.label, "bandwidth_mib_s", 100 * share, 100 * BACK, "%")


DETECTOR = Declared("write cache", slc_cache, place=16)
