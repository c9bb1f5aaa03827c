"""Fit the asymptotes that the values of loops approach when their steady-state windows end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from drivelab.criteria.settling import to_asymptote
from drivelab.tables.labels import KINDS

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")

Asymptotes = Mapping[tuple[str, str, str], float]
"""Asymptote relative to the average of the window, in percent, by recording, cell label and metric."""


def asymptotes(loops: pd.DataFrame, steady_state: pd.DataFrame) -> Asymptotes:
    """Return the asymptotes of all cells with a steady-state window.

    `loops` are rows of table `cells` with `cell_label`, of loops. Cells that lack a warm round up to the end of their
    window, or occur in several loops, have none.
    """
    of_loop = ["recording", "step"]
    windows = steady_state.groupby(of_loop, as_index=False)[["window_start", "window_end"]].first()
    warm = loops.loc[~loops["cold"].astype(bool), [*of_loop, "round", "cell_label", *_METRICS]]
    rounds = warm.merge(windows, on=of_loop)
    rounds = rounds[rounds["round"] <= rounds["window_end"]]
    found: dict[tuple[str, str, str], float] = {}
    twice = set()
    for (recording, _), loop in rounds.groupby(of_loop, sort=False):
        window = int(loop["window_end"].iloc[0] - loop["window_start"].iloc[0]) + 1
        cells, labels = pd.factorize(loop["cell_label"])
        numbers, places = np.unique(loop["round"].to_numpy(dtype=int), return_inverse=True)
        shape = len(labels), len(numbers)
        times = np.zeros(shape)
        np.add.at(times, (cells, places), 1)
        for metric in _METRICS:
            values = np.zeros(shape)
            np.add.at(values, (cells, places), loop[metric].to_numpy(dtype=float))
            with np.errstate(invalid="ignore"):
                values /= times  # NaN without the round
            whole = (values > 0).all(axis=1)
            off = to_asymptote(values[whole], window, of_times=KINDS[metric] == "time")
            keys = [(str(recording), str(label), metric) for label in labels[whole]]
            twice.update(found.keys() & keys)
            found.update(zip(keys, (100 * np.expm1(off)).tolist(), strict=True))
    return {key: percent for key, percent in found.items() if key not in twice}
