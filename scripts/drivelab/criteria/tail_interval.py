"""Confidence interval of a high percentile of response times that depend on each other.

Requests that wait in one queue are late together, so they hold less information than independent requests. The
interval uses order statistics (binomial ranks; Hahn and Meeker, Statistical Intervals, 1991, section 5.2) for an
*effective* number of requests: the number of requests divided by the dispersion. The dispersion comes from batch means
(Law and Kelton, Simulation Modeling and Analysis, section 9.5): the variance of the number of late requests in equal
batches, divided by the variance that independent requests would have. The largest dispersion of several batch lengths
counts, and never less than 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from drivelab.criteria.settling import Floats

CONFIDENCE = 0.95
_SIDES = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
_BATCHES = (10, 20, 40)
"""Numbers of batches of a measurement: a few long ones see long delays, many short ones measure the variance well."""
WARM_UP = 0.1
"""Share of the requests, the first ones, that do not count: the queue starts empty."""

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class TailInterval:
    """A percentile with its confidence interval; `high` is infinite if too few requests lie beyond the percentile."""

    value: float
    low: float
    high: float
    requests: int
    dispersion: float
    """How many requests hold as much information as one independent request, at least 1."""

    @property
    def effective_requests(self) -> int:
        return math.floor(self.requests / self.dispersion)


def counted(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the values of the requests after the warm-up; `values` are in the order in which requests were due."""
    return values[math.ceil(WARM_UP * len(values)) :]


def tail_interval(parts: Sequence[Floats], percentile: float) -> TailInterval:
    """Return the percentile of all `parts` together, with its interval.

    Each part has the response times of one stretch of time, in the order in which the requests were due. Infinite times
    belong to requests that were never served. `percentile` is between 50 and 100. Raises ValueError without requests.
    """
    from scipy.stats import binom  # slow, and not needed by those who read results

    values = np.sort(np.concatenate(parts))
    count, share = len(values), percentile / 100
    if not count:
        raise ValueError("an interval needs requests")
    value = float(values[max(math.ceil(share * count - 1e-9), 1) - 1])
    dispersion = max(_dispersion(parts, value, 1 - share, batches) for batches in _BATCHES)
    effective = max(math.floor(count / dispersion), 1)
    below, above = (float(binom.ppf(side, effective, share)) for side in _SIDES)
    low = values[min(max(math.floor(count * (below - 1) / effective), 0), count - 1)] if below >= 1 else 0.0
    high = values[min(math.ceil(count * (above + 1) / effective), count) - 1] if above + 1 <= effective else math.inf
    return TailInterval(value, min(float(low), value), max(float(high), value), count, dispersion)


def fewest_requests(percentile: float) -> int:
    """Return the fewest independent requests whose interval of a percentile has an upper end."""
    return math.ceil(math.log(_SIDES[0]) / math.log(percentile / 100))


def _dispersion(parts: Sequence[Floats], threshold: float, share: float, batches: int) -> float:
    """Return the variance of the number of requests at or beyond the threshold, relative to a binomial variance.

    Each part is cut into `batches`. The factor of Student's t makes up for a variance that so few batches estimate.
    """
    late = [np.array_split(part >= threshold, batches) for part in parts if len(part) >= batches]
    counts = np.array([batch.sum() for part in late for batch in part], dtype=float)
    sizes = np.array([len(batch) for part in late for batch in part], dtype=float)
    if len(counts) < 2 or not counts.any():
        return 1.0
    expected = sizes * (counts.sum() / sizes.sum())
    variance = float(((counts - expected) ** 2).sum()) / (len(counts) - 1)
    independent = float(expected.mean()) * (1 - min(share, float(counts.sum() / sizes.sum())))
    scale = float(special.stdtrit(len(counts) - 1, _SIDES[1]) / special.ndtri(_SIDES[1])) ** 2
    return max(scale * variance / independent, 1.0) if independent > 0 else 1.0
