"""Measure the credits of a volume: how much it bursts, and how fast idle time brings credits back.

A token bucket (Amazon EBS gp2 and st1, Azure disks): a volume earns credits at its base rate, saves at most a bucket of
them, and spends them when it is faster. A full bucket of C credits lasts for C / (burst rate - base rate).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drivelab.analysis.values.bursts import BACK, Burst, Fall, fallen_from, find_fall, share_back

STAYS = 0.9
"""Least share of the slices on either side of the fall that are on their side of the middle of both rates (ours)."""
SAME = 0.15
"""Largest relative difference between what idle times bring back and what the base rate earns (ours)."""
PROPORTIONAL = 0.25
"""The same for another rate, which is estimated from what idle times bring back (ours)."""
_MIB = 1 << 20

Returned = Sequence[tuple[float, float]]
"""Idle times in seconds, and the credits that each brought back."""


@dataclass(frozen=True)
class Credits:
    """What a fall of the rate and its recovery say about credits, in bytes of the load."""

    fall: Fall
    bucket_bytes: float
    """Credits that the first burst used: all that was moved beyond the lower rate."""
    refill_bytes_s: float | None
    """Credits per second of idle time; None if no idle time brought back a part, but all, nothing or too much."""
    is_plausible: bool
    """Whether the rate stays where it falls to, and idle times bring credits back in proportion to their duration."""
    at_base_rate: bool
    """Whether they bring back what the lower rate earns."""

    @property
    def is_bucket(self) -> bool:
        """Return whether this is certainly a token bucket: idle time earned a part of the credits at the lower rate."""
        return self.is_plausible and self.at_base_rate and self.refill_bytes_s is not None


def credits_of(bursts: Sequence[Burst]) -> Credits | None:
    """Return the credits that bursts used (see `drivelab.analysis.values.bursts.bursts`).

    None if the rate of the first burst does not fall.
    """
    first, *others = bursts
    fall = find_fall(first.moved, first.seconds)
    if fall is None:
        return None
    base = fall.slow_mib_s * _MIB
    bucket = fall.fast_bytes * (1 - fall.slow_mib_s / fall.fast_mib_s)
    coarse = float(np.median(first.seconds)) * (fall.fast_mib_s * _MIB - base) / 2  # half a slice is uncertain
    returned = [
        (burst.wait_s, share_back(burst, fall) * bucket) for burst in others if fallen_from(burst, fall) is not None
    ]
    parts = [(wait_s, back) for wait_s, back in returned if back < BACK * bucket]
    earned, idle_s = sum(back for _, back in parts), sum(wait_s for wait_s, _ in parts)
    refill = earned / idle_s if earned > coarse * len(parts) else None
    at_base = _earns(base, returned, bucket, SAME, coarse)
    by_itself = refill is not None and len(parts) > 1 and _earns(refill, returned, bucket, PROPORTIONAL, coarse)
    return Credits(fall, bucket, refill, _stays(first, fall) and (at_base or by_itself), at_base)


def _earns(rate: float, returned: Returned, bucket: float, difference: float, coarse: float) -> bool:
    """Return whether each idle time brought back what this rate earns, at most a bucket."""
    return all(
        abs(back - min(rate * wait_s, bucket)) <= difference * min(rate * wait_s, bucket) + coarse
        for wait_s, back in returned
    )


def _stays(burst: Burst, fall: Fall) -> bool:
    rates, ends_s = burst.rates / _MIB, np.cumsum(burst.seconds)
    middle = math.sqrt(fall.fast_mib_s * fall.slow_mib_s)
    before, after = rates[ends_s <= fall.fast_s], rates[ends_s - burst.seconds >= fall.fast_s]
    return bool(np.mean(before > middle) >= STAYS and np.mean(after < middle) >= STAYS)
