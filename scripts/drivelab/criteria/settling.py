"""Look beyond the rule for steady state: how far from its end a measurement stopped.

The rule of the PTS passes windows whose values still fall by up to 10 %, and ends a slow approach long before its end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

FEWEST_ROUNDS = 5
"""Fewest rounds for a fit of three parameters."""
_FALSE_ALARM = 0.01
"""Chance of an approach in independent values without one."""
_TIME_CONSTANTS = 30


def to_asymptote(values: Floats, window: int, *, of_times: bool = False) -> Floats:
    """Return log(asymptote / mean of the last `window` rounds) of each cell, shape (cells,).

    `values` has shape (cells, rounds), all positive: each cell's rounds from the first to the last of its window. The
    fit is asymptote + amplitude · exp(-round / time constant), with equal relative errors and a time constant of at
    most all rounds; a slower approach is a straight line to them. The result is 0 if the amplitude does not differ from
    zero, or for fewer than FEWEST_ROUNDS. Values that are times are fitted by their reciprocals: rates decay
    exponentially.
    """
    if of_times:
        return -to_asymptote(1 / values, window)
    cells, rounds = values.shape
    if rounds < FEWEST_ROUNDS:
        return np.zeros(cells)
    decays = np.exp(-np.arange(rounds) / np.geomspace(0.5, rounds, _TIME_CONSTANTS)[:, None])
    weights = values**-2.0
    total = weights.sum(axis=1, keepdims=True)
    mean_decay, mean = weights @ decays.T / total, (weights * values).sum(axis=1, keepdims=True) / total
    of_decay = weights @ (decays**2).T - total * mean_decay**2
    of_both = (weights * values) @ decays.T - total * mean_decay * mean
    of_values = (weights * (values - mean) ** 2).sum(axis=1, keepdims=True)
    rest = np.maximum(of_values - of_both**2 / of_decay, 0.0)
    best = np.arange(cells), rest.argmin(axis=1)
    amplitude = (of_both / of_decay)[best]
    error = np.sqrt(rest[best] / (rounds - 3) / of_decay[best])
    rounding = 1e-9 * mean[:, 0]
    approaches = np.abs(amplitude) > -special.stdtrit(rounds - 3, _FALSE_ALARM / 2) * error + rounding
    to_come = -amplitude * decays[best[1], -window:].mean(axis=1) / values[:, -window:].mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(approaches & (to_come > -1), np.log1p(to_come), 0.0)
