"""Infer the ratio of two drives from their recordings.

The unit of replication is the recording: purge, precondition, measure. The model of the logarithm of a value is

    drive and cell + effect of the recording + rest,

where the effect of a recording is the same for all cells of a measurement and metric: one purge, one state of the
flash. If each run of both drives followed the run before, the runs are blocks, and the model is that of the differences
within blocks (Fisher, The Design of Experiments, 1935). Else each drive has its own variances, and the error of a ratio
is Welch's (Biometrika 34, 1947), with Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946) over all parts.

The variance of the rest is shrunk towards that of the other cells: moderated variances (Smyth, Statistical Applications
in Genetics and Molecular Biology 3, 2004, section 6.2). Two things are more careful than there, because a study has
tens of cells and not thousands of genes, and the scatter of reads and writes differs by more than the prior expects:
the scatter of the variances is taken one standard error high, and a quarter of the prior's degrees of freedom counts.
The effect of the recording is not shrunk: all cells share it, so they are one sample of it. Shrinking the sum of both
as if cells were independent covers 90 % instead of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

FEWEST_CELLS = 3
"""Fewest cells for shrinking variances, and for telling a recording's effect from the rest."""
ROUNDING = 1e-9
"""Relative scatter and differences below this count as zero: they are floating-point rounding."""
_CAUTION = 1.0
"""Standard errors that are added to the excess scatter of the variances."""
_COUNTED = 0.25
"""Share of the prior's degrees of freedom that counts."""


@dataclass(frozen=True)
class Spread:
    """Variance of the logarithm of one drive's values over its recordings, arrays of shape (cells,)."""

    recordings: int
    shared: float
    """Variance of the effect of a recording on all cells."""
    rest: Floats
    """Variance of the rest, by cell, shrunk."""
    rest_freedom: Floats
    """Degrees of freedom of `rest`."""

    @property
    def error(self) -> Floats:
        """Return the variance of the mean over the recordings."""
        return (self.shared + self.rest) / self.recordings


@dataclass(frozen=True)
class Ratios:
    """Ratios of two drives, arrays of shape (ratios,)."""

    logs: Floats
    """Logarithms of the ratios: differences of mean logarithms."""
    errors: Floats
    """Their standard errors; 0 if no recording differs from another of its drive; NaN if unknown."""
    freedom: Floats
    """Degrees of freedom; 1 where the error is 0 or unknown."""
    unsure: Floats
    """Largest error that more recordings do not reduce: half a bin for each value that comes from bins, and the most
    that load of others may have changed; else 0."""

    def chosen(self, places: npt.NDArray[np.bool_]) -> Ratios:
        """Return some of the ratios."""
        return Ratios(self.logs[places], self.errors[places], self.freedom[places], self.unsure[places])


def scatter_within(groups: Iterable[npt.ArrayLike]) -> tuple[float, int]:
    """Return the sum of squared deviations of logarithms from the mean of their group, and its degrees of freedom.

    Groups of one value, or with a value that is not positive, do not count.
    """
    squares, freedom = 0.0, 0
    for group in groups:
        values = np.asarray(group, dtype=float)
        if len(values) > 1 and bool((values > 0).all()):
            squares += float(np.log(values).var()) * len(values)
            freedom += len(values) - 1
    return squares, freedom


def spread(logs: Floats) -> Spread:
    """Return the parts of the variance of logarithms of shape (cells, recordings), at least two recordings."""
    cells, recordings = logs.shape
    freedom = recordings - 1
    deviations = logs - logs.mean(axis=1, keepdims=True)
    deviations[np.ptp(logs, axis=1) <= ROUNDING] = 0.0
    if cells < FEWEST_CELLS:
        return Spread(recordings, 0.0, (deviations**2).sum(axis=1) / freedom, np.full(cells, float(freedom)))
    effects = deviations.mean(axis=0)
    rest = ((deviations - effects) ** 2).sum(axis=1) / freedom * cells / (cells - 1)
    shared = max(float((effects**2).sum()) / freedom - float(rest.mean()) / cells, 0.0)
    return Spread(recordings, shared, *shrunk(rest, freedom))


def shrunk(variances: Floats, freedom: int) -> tuple[Floats, Floats]:
    """Return variances shrunk towards those of the other cells, and their degrees of freedom."""
    cells = len(variances)
    positive = variances[variances > 0]
    if len(positive) < FEWEST_CELLS:
        return variances, np.full(cells, float(freedom))
    logs = np.log(positive) - _log_bias(freedom)
    of_one = float(special.polygamma(1, freedom / 2))
    excess = max(float(logs.var(ddof=1)) - of_one, 0.0)
    fourth = float(special.polygamma(3, freedom / 2)) / len(positive)
    error = math.sqrt(2 * (of_one + excess) ** 2 / (len(positive) - 1) + fourth)
    prior_freedom = 2 * _trigamma_inverse(excess + _CAUTION * error)
    prior = math.exp(float(logs.mean()) + _log_bias(prior_freedom))
    together = (prior_freedom * prior + freedom * variances) / (prior_freedom + freedom)
    return together, np.full(cells, min(freedom + _COUNTED * prior_freedom, freedom * (cells - 1.0)))


def _log_bias(freedom: float) -> float:
    """Return the expected logarithm of a variance estimated with these degrees of freedom, for a true one of 1."""
    return float(special.digamma(freedom / 2)) - math.log(freedom / 2)


def ratios(basis: Floats, comparison: Floats, *, paired: bool = False) -> Ratios:
    """Return the ratios comparison/basis of all cells of a measurement and metric.

    Both are logarithms of shape (cells, recordings), with at least two recordings. If they are `paired`, recordings at
    the same place are of one block: what shifts a whole block, such as a warming room, cancels.
    """
    sides = (spread(comparison - basis),) if paired else (spread(basis), spread(comparison))
    variances = sum((side.error for side in sides), np.zeros(len(basis)))
    squares = sum(
        (
            (side.shared / side.recordings) ** 2 / (side.recordings - 1)
            + (side.rest / side.recordings) ** 2 / side.rest_freedom
            for side in sides
        ),
        np.zeros(len(basis)),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(variances > 0, variances**2 / squares, 1.0)
    return Ratios(comparison.mean(axis=1) - basis.mean(axis=1), np.sqrt(variances), freedom, np.zeros(len(basis)))


def _trigamma_inverse(value: float) -> float:
    """Return y with trigamma(y) = value, by Newton's method (Smyth 2004, appendix)."""
    y = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, y))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, y))
        y += step
        if abs(step / y) < 1e-10:
            break
    return y
