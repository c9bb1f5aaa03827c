"""The input of a report as rows, and lookups by test and drive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from drivelab.analysis.exclusions import counted, left_out
from drivelab.analysis.verdict import STEADY
from drivelab.core.grouping import grouped
from drivelab.criteria.soundness import sound
from drivelab.report.document import APPLICATIONS, LATENCY, SATURATION, TAILS, THROUGHPUT
from drivelab.report.numbers import is_missing, percent
from drivelab.tables.labels import SCORE, known_by_throughput, loads_of

Row = Mapping[str, Any]
Key = tuple[str, str]
"""Drive and measurement."""

NAMES = (
    "summary", "deltas", "steady_state", "cells", "replays", "replay_passes", "replay_operations", "replay_streams",
    "replay_mappings", "application_runs", "load_rates", "latency_bins", "drives", "hosts", "traces", "differences",
    "findings", "saturation", "exclusions", "variation", "model_deltas", "conditions",
)  # fmt: skip
_OF_A_TEST = ["drive", "measurement"]


class Several(tuple[Any, ...]):
    """The values of a property that changed during the study."""

    def __str__(self) -> str:
        return " or ".join(map(str, self))


def each(show: Callable[[Any], str], value: Any) -> str:
    """Format a value with `show`; of `Several`, format each."""
    return str(Several(map(show, value))) if isinstance(value, Several) else show(value)


class Rows(Mapping[str, list[Row]]):
    """Tables as rows, each converted on first use: few readers need all of a large table."""

    def __init__(self, frames: Mapping[str, pd.DataFrame]) -> None:
        self.frames = frames
        self._rows: dict[str, list[Row]] = {}

    def __getitem__(self, name: str) -> list[Row]:
        if name not in self._rows:
            self._rows[name] = rows_of(self.frames[name]) if name in self.frames else []
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@dataclass(frozen=True)
class Inputs:
    """Rows by table, the study, and a plan for each recording."""

    tables: Rows
    study: Row
    plans: tuple[Row, ...]

    @classmethod
    def of(cls, tables: Mapping[str, Any], study: Row, plans: Sequence[Row]) -> Inputs:
        """Create from DataFrames; a missing table has no rows.

        Unsound cells and excluded recordings appear in no table except `exclusions`.
        """
        frames = {name: tables[name] for name in NAMES if name in tables}
        excluded = left_out(frames["exclusions"]) if "exclusions" in frames else set()
        if excluded:
            frames |= {
                name: counted(frame, frames["exclusions"])
                for name, frame in frames.items()
                if name != "exclusions" and "recording" in frame
            }
            plans = [plan for plan in plans if plan["recording"] not in excluded]
        if len(frames.get("cells", ())):
            frames["cells"] = sound(frames["cells"])
        if len(frames.get("summary", ())) and len(frames.get("saturation", ())):
            frames["summary"] = _with_drifts(frames["summary"], frames["saturation"])
        return cls(Rows(frames), study, tuple(plans))

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """All tests of all drives: test by test, drives in the order of the plans."""
        rows = [*self.plans, *(row for row in self.tables["summary"] if row.get("protocol") != SCORE)]
        keys = dict.fromkeys((str(row["drive"]), str(row["measurement"])) for row in rows)
        tests = list(dict.fromkeys(measurement for _, measurement in keys))
        return tuple(sorted(keys, key=lambda key: tests.index(key[1])))

    @cached_property
    def drives(self) -> tuple[str, ...]:
        """Drives in the order of the plans, but the basis first."""
        names = list(dict.fromkeys(drive for drive, _ in self.keys))
        basis = self.study.get("basis")
        return tuple(sorted(names, key=lambda drive: drive != basis))

    @cached_property
    def measurements(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(measurement for _, measurement in self.keys))

    @cached_property
    def of_applications(self) -> frozenset[str]:
        """Measurements that replay traces or run applications."""
        rows = (*self.tables["replays"], *self.tables["application_runs"])
        return frozenset(str(row["measurement"]) for row in rows)

    @cached_property
    def of_saturation(self) -> frozenset[str]:
        """Measurements with a soak that saturates a drive."""
        return frozenset(str(row["measurement"]) for row in self.tables["saturation"])

    @cached_property
    def anchors(self) -> Mapping[Key, str]:
        """Anchor of each page, unique and safe in a URL."""
        anchors: dict[Key, str] = {}
        for number, key in enumerate(self.keys, start=1):
            name = slug("-".join(key))
            anchors[key] = f"{name}-{number}" if name in anchors.values() else name
        return anchors

    @cached_property
    def _places(self) -> dict[str, Mapping[Key, Any]]:
        """Row numbers of each test, by table; a cache that fills on use."""
        return {}

    @cached_property
    def _rows_by_key(self) -> dict[str, Mapping[Key, list[Row]]]:
        return {}

    def frame(self, table: str) -> pd.DataFrame:
        """Return a whole table; an empty frame without columns if it is missing."""
        return self.tables.frames.get(table, pd.DataFrame())

    def frame_of(self, table: str, key: Key) -> pd.DataFrame:
        """Return the rows of a table for one test of one drive, as a frame."""
        if table not in self._places:
            frame = self.frame(table)
            keyed = not frame.empty and set(_OF_A_TEST) <= set(frame.columns)
            indices = frame.groupby(_OF_A_TEST, sort=False).indices if keyed else {}
            self._places[table] = {key: _contiguous(places) for key, places in indices.items()}
        return self.frame(table).iloc[self._places[table].get(key, slice(0))]

    def of_key(self, table: str, key: Key) -> list[Row]:
        """Return the rows of a table for one test of one drive."""
        if table not in self._rows_by_key:
            self._rows_by_key[table] = grouped(self.tables[table], lambda row: (row["drive"], row["measurement"]))
        return self._rows_by_key[table].get(key, [])

    @cached_property
    def _plans(self) -> Mapping[Key, list[Row]]:
        return grouped(self.plans, lambda plan: (plan["drive"], plan["measurement"]))

    def plans_of(self, key: Key) -> list[Row]:
        return self._plans.get(key, [])

    def drive(self, name: str) -> Row:
        """Return the identity of a drive, with `Several` values for what changed during the study."""
        return _merged([row for row in self.tables["drives"] if row["drive"] == name])

    def host(self, plans: Iterable[Row]) -> Row:
        """Return the host of these plans: the named one, or the only one of the study."""
        hosts = self.tables["hosts"]
        named = {plan["host"] for plan in plans if not is_missing(plan.get("host"))}
        rows = [row for row in hosts if row["host"] in named] if named else hosts
        return _merged(rows) if len({row["host"] for row in rows}) == 1 else {}

    def flag(self, key: Key, name: str) -> bool:
        """Return whether a plan or result of this test has a flag, such as `reduced` or `virtual`."""
        return any(bool(row.get(name)) for row in [*self.plans_of(key), *self.of_key("summary", key)])

    def on_virtual_clock(self, key: Key) -> bool:
        return any(row.get("clock") == "virtual" for row in [*self.plans_of(key), *self.of_key("summary", key)])

    @cached_property
    def _tracked(self) -> Mapping[str, list[tuple[str, str]]]:
        tracked: dict[str, dict[tuple[str, str], None]] = {}
        for row in self.tables["steady_state"]:
            tracked.setdefault(row["measurement"], {})[row["variable"], row["metric"]] = None
        return {measurement: list(variables) for measurement, variables in tracked.items()}

    def tracked(self, measurement: str) -> list[tuple[str, str]]:
        """Return the tracked variables of a loop as (cell label, metric), in the protocol's order."""
        return self._tracked.get(measurement, [])

    @cached_property
    def _summary(self) -> Mapping[tuple[str, str, str, str], Row]:
        rows: dict[tuple[str, str, str, str], Row] = {}
        for row in self.tables["summary"]:
            rows.setdefault((row["drive"], row["measurement"], row["cell_label"], row["metric"]), row)
        return rows

    def summary_of(self, drive: str, measurement: str, cell_label: str, metric: str) -> Row | None:
        """Return the summary row of one value of a drive; None if it was not measured."""
        return self._summary.get((drive, measurement, cell_label, metric))

    @cached_property
    def loads(self) -> Mapping[tuple[str, str], str]:
        """Threads and queue depth, as `T2Q8`, by measurement and cell label; without cells where they vary."""
        return loads_of(self.frame("cells"))

    @cached_property
    def _leading(self) -> Mapping[tuple[str, str], str]:
        cells = self.frame("cells").reindex(columns=["measurement", "cell_label", "pattern", "rate_iops"])
        cells = cells.drop_duplicates(["measurement", "cell_label"])
        leading = {}
        for measurement, label, pattern, rate_iops in cells.itertuples(index=False):
            if not is_missing(rate_iops):
                leading[measurement, label] = "mean_latency_us"
            elif pattern == "sequential":
                leading[measurement, label] = "bandwidth_mib_s"
        return leading

    def leading(self, measurement: str, cell_label: str) -> str | None:
        """Return the metric that a cell is known by, if not by its IOPS.

        At a limited rate drives differ in latency only. Sequential I/O and large blocks are known by throughput.
        """
        by_throughput = "bandwidth_mib_s" if known_by_throughput(cell_label) else None
        return self._leading.get((measurement, cell_label), by_throughput)

    @cached_property
    def _deltas(self) -> Mapping[str, list[Row]]:
        return grouped(self.tables["deltas"], lambda row: row["measurement"])

    def deltas_of(self, measurement: str) -> list[Row]:
        """Return the deltas of one measurement."""
        return self._deltas.get(measurement, [])

    @cached_property
    def _differences(self) -> Mapping[tuple[str, str, str], list[Row]]:
        return grouped(self.tables["differences"], lambda row: (row["measurement"], row["basis"], row["comparison"]))

    def differences_of(self, measurement: str, basis: str, comparison: str) -> list[Row]:
        """Return the differences between two compared drives, unintended ones first."""
        rows = self._differences.get((measurement, basis, comparison), [])
        return sorted(rows, key=lambda row: bool(row["intended"]))

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Path of each recording, if known."""
        return {plan["recording"]: str(plan["path"]) for plan in self.plans if not is_missing(plan.get("path"))}

    def sources(self, recordings: Iterable[Any]) -> tuple[str, ...]:
        """Return `recording (path)` for each recording, once."""
        return tuple(
            f"{name} ({self.paths[name]})" if name in self.paths else name
            for name in dict.fromkeys(map(str, recordings))
        )


def _contiguous(places: Any) -> Any:
    """Return row numbers as a slice if they are contiguous: a slice copies nothing."""
    contiguous = int(places[-1]) - int(places[0]) + 1 == len(places)
    return slice(int(places[0]), int(places[-1]) + 1) if contiguous else places


def _merged(rows: list[Row]) -> Row:
    """Merge rows into one; values that differ become `Several`."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = list(dict.fromkeys(row[name] for row in rows if not is_missing(row.get(name))))
        merged[name] = values[0] if len(values) == 1 else Several(values) or None
    return merged


def _with_drifts(summary: pd.DataFrame, saturation: pd.DataFrame) -> pd.DataFrame:
    """Extend the verdict of each soak that meets its steady-state limits while its level drifts."""
    drifting = {(row["recording"], row["cell_label"]): row["level_drift_pct"]
                for row in rows_of(saturation[~saturation["level_steady"].astype(bool)])}  # fmt: skip
    verdicts = [
        f"{verdict} by its own limits, but level NOT steady: drift {percent(drifting[recordings[0], label], True)}"
        if verdict == STEADY and (recordings[0], label) in drifting
        else verdict
        for verdict, recordings, label in zip(
            *(summary[name] for name in ("verdict", "recordings", "cell_label")), strict=True
        )
    ]
    return summary.assign(verdict=verdicts)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return rows as mappings; much faster than `to_dict` for text columns."""
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(frame.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def slug(name: str) -> str:
    """Convert a name to a part of a URL fragment."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "section"


_LATENCIES = ("mean_latency_us", "read_mean_latency_us", "write_mean_latency_us", "p50_latency_us", "p90_latency_us",
              "best_mean_latency_us")  # fmt: skip


def question_of(inputs: Inputs, measurement: str, metric: str) -> str:
    """Return the question that a value answers: by its measurement, else by its metric."""
    if measurement in inputs.of_applications:
        return APPLICATIONS
    if metric not in _LATENCIES and metric.endswith("_us"):
        return TAILS
    if measurement in inputs.of_saturation:
        return SATURATION
    return LATENCY if metric in _LATENCIES else THROUGHPUT


def main_question(inputs: Inputs, measurement: str) -> str:
    """Return the question of a measurement: that of the first variable by which it finds steady state, or of IOPS."""
    return question_of(inputs, measurement, next((metric for _, metric in inputs.tracked(measurement)), "iops"))
