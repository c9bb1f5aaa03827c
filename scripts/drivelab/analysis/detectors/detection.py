"""Provide what detectors need: a recording's tables and rates over time, with telemetry aligned to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from drivelab.analysis.detectors.courses import cell_levels, rates_of_soaks, relative_course, seconds
from drivelab.analysis.values.recovery import without_idle_time
from drivelab.analysis.values.saturation_values import counted_slices, saturating
from drivelab.criteria.settling import Floats
from drivelab.criteria.soundness import sound
from drivelab.criteria.steady_state import WINDOW
from drivelab.tables.labels import REPEATS
from drivelab.tables.schemas import SCHEMAS

_EMPTY = {name: SCHEMAS[name].empty_table().to_pandas() for name in ("series", "telemetry", "latency_bins")}


@dataclass(frozen=True)
class Recording:
    """The tables of one recording; missing tables are empty."""

    cells: pd.DataFrame
    """Sound rows of table `cells`, with the column `saturates`."""
    series: pd.DataFrame
    telemetry: pd.DataFrame
    latency_bins: pd.DataFrame

    @classmethod
    def of(cls, tables: Mapping[str, pd.DataFrame]) -> Recording:
        """Make a Recording from the tables of one recording; `cells` is required."""
        cells = tables["cells"]
        measured = sound(cells)
        # detectors select rows often, which is slow with Arrow strings and with many blocks
        strings = {name: object for name, kind in measured.dtypes.items() if kind == "str"}
        measured = measured.astype(strings).copy()
        others = {name: tables.get(name, empty) for name, empty in _EMPTY.items()}
        return cls(measured.assign(saturates=saturating(measured)), **others)

    @cached_property
    def loops(self) -> pd.DataFrame:
        """Return the warm rounds of loops."""
        return self.cells[(self.cells["kind"] == "loop") & ~self.cells["cold"].astype(bool)]

    @cached_property
    def soaks(self) -> dict[str, pd.DataFrame]:
        """Return {cell_label: slices of the soak in order}. Successive soaks of one workload are one soak."""
        soaks = self.cells[self.cells["kind"] == "soak"].sort_values(["step", "round"])
        return {str(label): soak for label, soak in soaks.groupby("cell_label", sort=False)}

    @cached_property
    def seconds(self) -> dict[str, pd.DataFrame]:
        """Return {cell_label: course of the soak}, see `courses.seconds`."""
        rates = rates_of_soaks(self.series)
        return {label: seconds(soak, rates) for label, soak in self.soaks.items()}

    @cached_property
    def rounds(self) -> dict[str, pd.DataFrame]:
        """Return {cell_label: warm rounds of the loop that are repeats, in order}.

        All of them count where the protocol repeats them. The last five count where the loop runs until steady state:
        before them, the drive still settles (SNIA PTS). Rounds of a phase are left out: the steps between them change
        the drive on purpose.
        """
        loops = self.loops[self.loops["phase"].isna() & ~without_idle_time(self.loops)].sort_values("round")
        return {
            str(label): group if group["until"].iloc[0] in REPEATS else group.tail(WINDOW)
            for label, group in loops.groupby("cell_label", sort=False)
        }

    @cached_property
    def counted(self) -> list[pd.DataFrame]:
        """Return the rows of each cell that its result uses: repeats or slices."""
        return [*self.rounds.values(), *self._counted_slices.values()]

    @cached_property
    def _counted_slices(self) -> dict[str, pd.DataFrame]:
        return {label: counted_slices(soak).slices for label, soak in self.soaks.items()}

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Return the level of each cell, see `cell_levels`."""
        return cell_levels(self.counted)

    @cached_property
    def counted_seconds(self) -> dict[str, pd.DataFrame]:
        """Return `seconds` of the slices that count only.

        Before these slices, a fresh drive changes on its way to saturation.
        """
        begins_s = {label: slices["elapsed_s"].min() for label, slices in self._counted_slices.items()}
        return {
            label: course[course["begin_s"] >= begins_s[label] - 1e-6].reset_index(drop=True)
            for label, course in self.seconds.items()
        }

    @cached_property
    def relative(self) -> pd.DataFrame:
        """Return the relative rates of the whole recording, see `relative_course`."""
        return relative_course(self.loops, self.seconds.values())


@dataclass(frozen=True)
class Finding:
    """A row of table `findings` without the recording's key and the detector's name.

    `drivelab.tables.result_schemas` describes the columns.
    """

    found: bool
    words: str
    cell_label: str | None = None
    metric: str | None = None
    value: float | None = None
    threshold: float | None = None
    unit: str | None = None
    begin_s: float | None = None
    end_s: float | None = None


Detector = Callable[[Recording], Iterable[Finding]]
"""Returns the findings in one recording, or one finding that says "nothing found"; no finding without data."""


class Declared(NamedTuple):
    """A detector as its module declares it, as `DETECTOR`."""

    name: str
    """Name in table `findings` and in reports."""
    detect: Detector
    place: int = 100
    """Place in reports: disturbances are below 10, characteristics of drives above."""


FARTHEST_S = 30.0
"""Largest distance of a sample that applies to a time: temperature is read every few seconds and changes over minutes
(ours)."""


def samples(recording: Recording) -> pd.DataFrame:
    """Return table `telemetry` in time order with at_s, seconds of the measurement.

    The result is empty without cells.
    """
    cells, telemetry = recording.cells, recording.telemetry
    if cells.empty or telemetry.empty:
        return telemetry.assign(at_s=pd.Series(dtype=float)).head(0)
    began = (cells["started"] - pd.to_timedelta(cells["elapsed_s"], unit="s")).median()
    at_s = (telemetry["time"] - began).dt.total_seconds()
    return telemetry.assign(at_s=at_s).sort_values("at_s").reset_index(drop=True)


def beside(
    times_s: Floats, telemetry: pd.DataFrame, column: str, direction: Literal["backward", "forward", "nearest"]
) -> Floats:
    """Return the value of a telemetry column at each time, shape (n,).

    Values are NaN without a sample within FARTHEST_S.
    `times_s` and `telemetry` (from `samples`) are in order. `forward` takes the next sample, for columns that describe
    the time since the previous sample.
    """
    known = telemetry.loc[telemetry[column].notna(), ["at_s", column]]
    if known.empty or not len(times_s):
        return np.full(len(times_s), np.nan)
    matched = pd.merge_asof(
        pd.DataFrame({"at_s": times_s}), known.astype(float), on="at_s", direction=direction, tolerance=FARTHEST_S
    )
    return np.asarray(matched[column], dtype=float)


CHANCE = 0.01
"""Largest accepted probability that a fall is chance."""


def chance_of_fall(slow: Floats, usual: Floats) -> float:
    """Return the chance of such a fall if both samples have one distribution.

    The test is that of Mann and Whitney (Annals of Mathematical Statistics 18, 1947).
    """
    from scipy import stats  # slow to import

    return float(stats.mannwhitneyu(slow, usual, alternative="less").pvalue)
