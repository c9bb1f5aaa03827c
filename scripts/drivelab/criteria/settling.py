"""Look beyond the rule for steady state: how far values may still move after a measurement stopped.

The rule of the PTS passes windows whose values still fall by up to 10 %, and ends a slow approach long before its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

Floats = npt.NDArray[np.float64]
Groups = npt.NDArray[np.intp]

FEWEST_ROUNDS = 5  # for a fit of three parameters
_FALSE_ALARM = 0.005  # chance of an approach in independent values without one, for one shape
_POSSIBLE = 4.0  # variances by which the squares of a possible shape exceed those of the best one (95 %)
_LEAST_END = 0.1  # smallest end, relative to the window (ours): a fall in a straight line has none
_TIME_CONSTANTS, _POWERS = np.geomspace(0.5, 40, 150)[:, None], np.array([0.5, 1.0, 2.0])[:, None]


def to_asymptotes(rates: Floats, window: int | Groups, alike: Sequence[Groups] = ()) -> Floats:
    """Return log(end / mean of the last `window` rounds) of the lowest and highest possible end, shape (2, series).

    `rates` has shape (series, rounds), all positive: rounds from the first to the last of the window, then NaN. They
    approach an end as exp(-round / time constant) or a power of the round, with equal relative errors. Series of one
    number in an array of `alike` (else each alone) share shape and relative amplitude. If it differs from zero, the
    ends of all shapes that fit nearly as well as the best one are possible, else the level of all rounds. The window is
    always possible: the lowest is at most 0, the highest at least, and both are for less than FEWEST_ROUNDS.
    """
    number = np.arange(rates.shape[1])
    decays = np.concatenate([np.exp(-number / _TIME_CONSTANTS), (number + 1.0) ** -_POWERS]).T
    rounds = np.isfinite(rates).sum(axis=1, keepdims=True)
    # weights are 1 / rate²: sums of weights and of weighted rates are sums of squared and of plain reciprocals
    inverse = np.nan_to_num(1 / rates)
    last = inverse * (number >= rounds - np.reshape(window, (-1, 1)))
    inverse *= last.sum(axis=1, keepdims=True) / (last**2).sum(axis=1, keepdims=True)
    weights, total = inverse**2, (inverse**2).sum(axis=1, keepdims=True)
    mean, mean_decay = inverse.sum(axis=1, keepdims=True) / total, weights @ decays / total
    of_decay, of_both = weights @ decays**2 - total * mean_decay**2, inverse @ decays - total * mean_decay * mean
    parts = [pd.DataFrame(part) for part in (of_decay, of_both, rounds - total * mean**2, rounds - 1.0)]
    found = [np.zeros((len(rates), 1))]
    for groups in alike or [np.arange(len(rates))]:
        decay, both, squares, freedom = (part.groupby(groups).transform("sum").to_numpy() for part in parts)
        amplitude, freedom = both / np.maximum(decay, 1e-12), np.maximum(freedom - 2, 1.0)
        rest = np.maximum(squares - amplitude * both, 0.0)
        best = rest.min(axis=1, keepdims=True)
        variance = best / freedom + 1e-12
        approach = squares - best > special.fdtri(1, freedom, 1 - _FALSE_ALARM) * variance
        ends = np.where(approach, np.maximum(mean - amplitude * mean_decay, _LEAST_END), mean)
        found.append(np.log(ends) * ((rest <= best + _POSSIBLE * variance) | ~approach))
    ends = np.concatenate(found, axis=1) * (rounds >= FEWEST_ROUNDS)
    return np.stack([ends.min(axis=1), ends.max(axis=1)])
