"""Infer the ratio of two drives from their recordings.

The unit of replication is the recording: purge, precondition, measure. Each cell is judged by its own scatter: the
error of a ratio of mean logarithms is Welch's (Biometrika 34, 1947), with Satterthwaite's degrees of freedom
(Biometrics Bulletin 2, 1946). That covers whatever cells do differently: a recording that shifts only writes, one noisy
cell among quiet ones, few I/Os beside many. If each run of both drives followed the run before, runs are blocks, and
from FEWEST_BLOCKS on the differences within blocks count (Fisher, The Design of Experiments, 1935).

Three recordings a side know little of their scatter, so there, cells help each other if they are of one access pattern
and read share, at least FEWEST_ALIKE of them, and scatter alike. The model of the logarithm of a value is then

    drive and cell + effect of the recording on these cells + rest,

and the variance of the rest is half the cell's own and half the mean over the cells. The effect of the recording is one
sample for all of them. A cell whose own variance is clearly larger than this one keeps its own: a recording may move
some of the cells, or some more than others. docs/method.md has how often the intervals hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from drivelab.criteria.repeats import FEWEST

Floats = npt.NDArray[np.float64]
FEWEST_ALIKE = 5
"""Fewest like cells that help each other: fewer would not tell that one of them scatters more."""
FEWEST_BLOCKS = 6
"""Fewest blocks that count: of fewer, differences within blocks know too little of their scatter."""
ROUNDING = 1e-9
"""Relative scatter and differences below this count as zero: they are floating-point rounding."""
_OWN = 0.5
"""Share of a cell's own variance among like cells."""
_UNLIKE_GROUP, _UNLIKE_CELL = 0.1, 0.2
"""p-values below which like cells, or one cell with more scatter than the others, are left to their own variance."""
_LARGER = 1.3
"""Ratio of a cell's own variance to the helped one above which it is left to its own."""


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


Part = tuple[Floats, Floats | float]
"""A part of the variance of ratios of mean logarithms, by cell, and its degrees of freedom."""


def ratios(basis: Floats, comparison: Floats, alike: npt.NDArray[np.int_], *, paired: bool = False) -> Ratios:
    """Return the ratios comparison/basis of all cells of a measurement and metric.

    Both are logarithms of shape (cells, recordings), with at least two recordings. Cells with an equal number in
    `alike` are of one access pattern and read share; a negative number is like no other. If the sides are `paired`,
    recordings at the same place are of one block: what shifts a whole block, such as a warming room, cancels.
    """
    in_blocks = paired and basis.shape[1] >= FEWEST_BLOCKS
    sides = [comparison - basis] if in_blocks else [basis, comparison]
    variances, freedom = _together([_own(side) for side in sides])
    if all(side.shape[1] == FEWEST for side in sides):
        for group in np.unique(alike[alike >= 0]):
            cells = np.flatnonzero(alike == group)
            if len(cells) >= FEWEST_ALIKE:
                shared, rests = zip(*(_parts(side[cells]) for side in sides), strict=True)
                pooled = _together([part for pair in zip(shared, map(_shrunk, rests), strict=True) for part in pair])
                chosen = _scatters_like_others(rests) & (variances[cells] <= _LARGER * pooled[0])
                variances[cells[chosen]], freedom[cells[chosen]] = (values[chosen] for values in pooled)
    logs = comparison.mean(axis=1) - basis.mean(axis=1)
    return Ratios(logs, np.sqrt(variances), freedom, np.zeros(len(logs)))


def _deviations(logs: Floats) -> Floats:
    deviations: Floats = logs - logs.mean(axis=1, keepdims=True)
    deviations[np.ptp(logs, axis=1) <= ROUNDING] = 0.0
    return deviations


def _own(logs: Floats) -> Part:
    """Return the variance of each cell's mean by its own scatter."""
    recordings = logs.shape[1]
    return (_deviations(logs) ** 2).sum(axis=1) / (recordings - 1) / recordings, recordings - 1.0


def _parts(logs: Floats) -> tuple[Part, Part]:
    """Return the variance of a mean by the effect that recordings have on all of these cells, and by the rest."""
    cells, recordings = logs.shape
    freedom = recordings - 1.0
    deviations = _deviations(logs)
    effects = deviations.mean(axis=0)
    rest = ((deviations - effects) ** 2).sum(axis=1) / freedom * cells / (cells - 1)
    shared = max(float((effects**2).sum()) / freedom - float(rest.mean()) / cells, 0.0)
    return (np.full(cells, shared / recordings), freedom), (rest / recordings, freedom)


def _shrunk(rest: Part) -> Part:
    """Return variances half way to their mean, with the degrees of freedom of such a sum if all are equal."""
    variances, freedom = rest
    together = _OWN * variances + (1 - _OWN) * variances.mean()
    return together, freedom / (_OWN**2 + (1 - _OWN**2) / len(variances))


def _together(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """Return the sum of variances, and its degrees of freedom; 1 for a sum of 0."""
    variances = np.sum([variance for variance, _ in parts], axis=0)
    squares = np.sum([variance**2 / freedom for variance, freedom in parts], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return variances, np.where(variances > 0, variances**2 / squares, 1.0)


def _scatters_like_others(rests: Sequence[Part]) -> npt.NDArray[np.bool_]:
    """Return whether each cell scatters like the others of its group; none does if their logarithms differ too much.

    Their logarithms are compared with those of equal variances (chi-square), and each variance with the mean of the
    others (F).
    """
    variances, freedom = np.stack([variance for variance, _ in rests]), float(np.mean([f for _, f in rests]))
    sides, cells = variances.shape
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN, for cells without any scatter, is not alike
        logs, sums = np.log(variances).sum(axis=0), variances.sum(axis=0)
        differing = ((logs - logs.mean()) ** 2).sum() / (sides * special.polygamma(1, freedom / 2))
        to_others = sums / ((sums.sum() - sums) / (cells - 1))
    larger = special.fdtrc(sides * freedom, sides * freedom * (cells - 1), to_others)
    return np.asarray((special.chdtrc(cells - 1, differing) >= _UNLIKE_GROUP) & (larger >= _UNLIKE_CELL))
