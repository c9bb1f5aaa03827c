"""Steady state of a soak: the PTS criterion, with slices of a continuous workload instead of rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drivelab.analysis.steady_state import is_steady
from drivelab.fio.document import Direction, FioResult, from_document
from drivelab.fio.slices import boundaries, completed, difference
from drivelab.stages.cell import metrics

STEADY_STATE = "steady state"


class SteadySlices:
    """A stop rule (drivelab.fio.early_end) for one fio process: steady state over a window of its slices.

    Each `every_s` gives one value, that of its last slice. Slices from before the process, or before a gap in an
    interrupted soak, are never in the window.
    """

    def __init__(self, criterion: Mapping[str, Any], slice_s: float) -> None:
        """Start with the `criterion` of a plan: every_s, window, data_excursion, slope_excursion, metric.

        Raises ValueError if `every_s` is not a multiple of `slice_s`.
        """
        self._criterion, self._minimum_s = criterion, slice_s / 2
        every = criterion["every_s"] / slice_s
        self._every = round(every)
        if not self._every or not math.isclose(every, self._every, rel_tol=1e-6):
            raise ValueError(f"{criterion['every_s']:g} s is not a multiple of a slice of {slice_s:g} s")
        self._results: list[FioResult] = []
        self._runtimes_s: list[float] = []
        self.window: dict[int, float] = {}
        """Window of a steady soak: values by slice number, from 1 in this process."""

    def __call__(self, document: Mapping[str, Any]) -> str | None:
        """Return STEADY_STATE if the soak is steady, else None; raises CellFailed for a document with an error."""
        result = completed(_without_bins(from_document(document)))
        self._results.append(result)
        self._runtimes_s.append(result.runtime_s)
        ends = boundaries(self._runtimes_s, self._minimum_s)
        rounds, rest = divmod(len(ends), self._every)
        if rest or rounds < self._criterion["window"]:
            return None
        numbers = [self._every * (number + 1) for number in range(rounds - self._criterion["window"], rounds)]
        values = [metrics(self._slice(ends, number))[self._criterion["metric"]] for number in numbers]
        if not all(math.isfinite(value) and value > 0 for value in values):
            return None  # a slice without I/O is not steady, and an average of 0 allows no relative excursion
        if not is_steady({self._criterion["metric"]: values}, self._criterion):
            return None
        self.window = dict(zip(numbers, values, strict=True))
        return STEADY_STATE

    def _slice(self, ends: list[int], number: int) -> FioResult:
        new = self._results[ends[number - 1]]
        return new if number == 1 else difference(self._results[ends[0]], self._results[ends[number - 2]], new)


def _without_bins(result: FioResult) -> FioResult:
    """Remove latency bins: they fill most of a document, no metric needs them, and thousands would be kept."""
    return replace(result, read=_lean(result.read), write=_lean(result.write))


def _lean(direction: Direction) -> Direction:
    return replace(direction, bins={})
