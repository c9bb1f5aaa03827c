"""What detectors look at: the tables of one recording, and its rates over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from drivelab.analysis.counted_slices import counted_slices, saturating
from drivelab.analysis.detectors.courses import rates_of_soaks, relative_course, seconds
from drivelab.analysis.detectors.levels import cell_levels
from drivelab.analysis.detectors.rounds import repeated_rounds
from drivelab.analysis.soundness import sound
from drivelab.tables.schemas import SCHEMAS


@dataclass(frozen=True)
class Recording:
    """The tables of one recording; those that it does not have are empty."""

    cells: pd.DataFrame
    """Sound rows of table `cells`, with the column `saturates`."""
    series: pd.DataFrame = field(default_factory=lambda: _empty("series"))
    telemetry: pd.DataFrame = field(default_factory=lambda: _empty("telemetry"))
    latency_bins: pd.DataFrame = field(default_factory=lambda: _empty("latency_bins"))

    @classmethod
    def of(cls, tables: Mapping[str, pd.DataFrame]) -> Recording:
        """From tables of one recording; `cells` must be there."""
        cells = tables["cells"]
        measured = sound(cells)
        # to choose rows, which detectors do all the time, takes long with the strings of Arrow and with many blocks
        strings = {name: object for name, kind in measured.dtypes.items() if kind == "str"}
        measured = measured.astype(strings).copy()
        others = {name: tables[name] for name in ("series", "telemetry", "latency_bins") if name in tables}
        return cls(measured.assign(saturates=saturating(measured)), **others)

    @cached_property
    def loops(self) -> pd.DataFrame:
        """Warm rounds of loops."""
        return self.cells[(self.cells["kind"] == "loop") & ~self.cells["cold"].astype(bool)]

    @cached_property
    def soaks(self) -> dict[str, pd.DataFrame]:
        """Slices of each soak by `cell_label`, in order; successive soaks of one workload are one."""
        soaks = self.cells[self.cells["kind"] == "soak"].sort_values(["step", "round"])
        return {str(label): soak for label, soak in soaks.groupby("cell_label", sort=False)}

    @cached_property
    def seconds(self) -> dict[str, pd.DataFrame]:
        """The course of each soak: begin_s and end_s of the measurement, iops; by `cell_label`."""
        rates = rates_of_soaks(self.series)
        return {label: seconds(soak, rates) for label, soak in self.soaks.items()}

    @cached_property
    def rounds(self) -> dict[str, pd.DataFrame]:
        """Rounds of loops that are repeats of each other, by `cell_label`."""
        return repeated_rounds(self.loops)

    @cached_property
    def counted(self) -> list[pd.DataFrame]:
        """The rows of each cell that its result is made of: rounds that are repeats, slices that count."""
        return [*self.rounds.values(), *(counted_slices(one).slices for one in self.soaks.values())]

    @cached_property
    def levels(self) -> pd.DataFrame:
        """What each cell comes to, see `cell_levels`."""
        return cell_levels(self.counted)

    @cached_property
    def counted_seconds(self) -> dict[str, pd.DataFrame]:
        """Of `seconds` those of the slices that count: a fresh drive on its way to saturation is to change."""
        found = {}
        for label, soak in self.soaks.items():
            counted = counted_slices(soak).slices
            begin_s = counted["elapsed_s"].min()
            course = self.seconds[label]
            found[label] = course[course["begin_s"] >= begin_s - 1e-6].reset_index(drop=True)
        return found

    @cached_property
    def relative(self) -> pd.DataFrame:
        """Rates of the whole recording as parts of what is usual at the time: see `relative_course`."""
        return relative_course(self.loops, self.seconds.values())


def _empty(name: str) -> pd.DataFrame:
    return SCHEMAS[name].empty_table().to_pandas()
