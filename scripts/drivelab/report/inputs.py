"""The input of a report as rows, and lookups by test and drive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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

_OF_A_TEST = ["drive", "measurement"]


class Several(tuple[Any, ...]):
    """The values of a property that changed during the study."""

    def __str__(self) -> str:
        return " or ".join(map(str, self))


def each(show: Callable[[Any], str], value: Any) -> str:
    """Format a value with `show`; of `Several`, format each."""
    return str(Several(map(show, value))) if isinstance(value, Several) else show(value)


class Rows(dict[str, list[Row]]):
    """Tables as rows, each converted on first use: few readers need all of a large table."""

    def __init__(self, frames: Mapping[str, pd.DataFrame]) -> None:
        super().__init__()
        self.frames = frames

    def __missing__(self, name: str) -> list[Row]:
        self[name] = rows_of(self.frames[name]) if name in self.frames else []
        return self[name]


@dataclass(frozen=True)
class Inputs:
    """Rows by table, the study, and a plan for each recording."""

    tables: Rows
    study: Row
    plans: tuple[Row, ...]
    _frames: dict[str, dict[Key, pd.DataFrame]] = field(init=False, default_factory=dict)
    """Rows of each test as frames, by table; it fills on use, as `_indices`."""
    _indices: dict[tuple[str, ...], dict[tuple[Any, ...], list[Row]]] = field(init=False, default_factory=dict)
    """Rows by the values of some columns."""

    @classmethod
    def of(cls, tables: Mapping[str, Any], study: Row, plans: Sequence[Row]) -> Inputs:
        """Create from DataFrames; a missing table has no rows.

        Unsound cells and excluded recordings appear in no table except `exclusions`.
        """
        frames = dict(tables)
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
        rows = Rows(frames)
        rows["plans"] = list(plans)
        return cls(rows, study, tuple(plans))

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
    def anchors(self) -> Mapping[Key, str]:
        """Anchor of each page, unique and safe in a URL."""
        anchors: dict[Key, str] = {}
        for number, key in enumerate(self.keys, start=1):
            name = slug("-".join(key))
            anchors[key] = f"{name}-{number}" if name in anchors.values() else name
        return anchors

    def frame(self, table: str) -> pd.DataFrame:
        """Return a whole table; an empty frame without columns if it is missing."""
        return self.tables.frames.get(table, pd.DataFrame())

    def frame_of(self, table: str, key: Key) -> pd.DataFrame:
        """Return the rows of a table for one test of one drive, as a frame."""
        frame = self.frame(table)
        if table not in self._frames:
            keyed = not frame.empty and set(_OF_A_TEST) <= set(frame.columns)
            self._frames[table] = dict(tuple(frame.groupby(_OF_A_TEST, sort=False))) if keyed else {}
        return self._frames[table].get(key, frame.iloc[:0])

    def where(self, table: str, **wanted: Any) -> list[Row]:
        """Return the rows of a table with these values."""
        place = (table, *wanted)
        if place not in self._indices:
            self._indices[place] = grouped(self.tables[table], lambda row: tuple(row[name] for name in wanted))
        return self._indices[place].get(tuple(wanted.values()), [])

    def of_key(self, table: str, key: Key) -> list[Row]:
        """Return the rows of a table for one test of one drive."""
        return self.where(table, drive=key[0], measurement=key[1])

    def plans_of(self, key: Key) -> list[Row]:
        """Return the plans of one test of one drive."""
        return self.of_key("plans", key)

    def drive(self, name: str) -> Row:
        """Return the identity of a drive, with `Several` values for what changed during the study."""
        return _merged(self.where("drives", drive=name))

    def host(self, plans: Iterable[Row]) -> Row:
        """Return the host of these plans: the named one, or the only one of the study."""
        hosts = self.tables["hosts"]
        named = {plan["host"] for plan in plans if not is_missing(plan.get("host"))}
        rows = [row for row in hosts if row["host"] in named] if named else hosts
        return _merged(rows) if len({row["host"] for row in rows}) == 1 else {}

    def tracked(self, measurement: str) -> list[tuple[str, str]]:
        """Return the tracked variables of a loop as (cell label, metric), in the protocol's order."""
        windows = self.where("steady_state", measurement=measurement)
        return list(dict.fromkeys((row["variable"], row["metric"]) for row in windows))

    def summary_of(self, drive: str, measurement: str, cell_label: str, metric: str) -> Row | None:
        """Return the summary row of one value of a drive; None if it was not measured."""
        rows = self.where("summary", drive=drive, measurement=measurement, cell_label=cell_label, metric=metric)
        return rows[0] if rows else None

    @cached_property
    def loads(self) -> Mapping[tuple[str, str], str]:
        """Threads and queue depth, as `T2Q8`, by measurement and cell label; without cells where they vary."""
        return loads_of(self.frame("cells"))

    @cached_property
    def _leading(self) -> Mapping[tuple[str, str], str]:
        cells = self.frame("cells").reindex(columns=["measurement", "cell_label", "pattern", "rate_iops"])
        cells = cells.drop_duplicates(["measurement", "cell_label"])
        leading = cells["pattern"].map({"sequential": "bandwidth_mib_s"})
        leading = leading.mask(cells["rate_iops"].notna(), "mean_latency_us")
        return dict(zip(zip(cells["measurement"], cells["cell_label"], strict=True), leading, strict=True))

    def leading(self, measurement: str, cell_label: str) -> str | None:
        """Return the metric that a cell is known by, if not by its IOPS.

        At a limited rate drives differ in latency only. Sequential I/O and large blocks are known by throughput.
        """
        metric = self._leading.get((measurement, cell_label))
        return metric if isinstance(metric, str) else "bandwidth_mib_s" if known_by_throughput(cell_label) else None

    @cached_property
    def _paths(self) -> Mapping[str, str]:
        return {plan["recording"]: plan["path"] for plan in self.plans if not is_missing(plan.get("path"))}

    def sources(self, recordings: Iterable[Any]) -> tuple[str, ...]:
        """Return `recording (path)` for each recording, once, as far as its path is known."""
        names = dict.fromkeys(map(str, recordings))
        return tuple(f"{name} ({self._paths[name]})" if name in self._paths else name for name in names)

    def sources_of(self, rows: Iterable[Row]) -> tuple[str, ...]:
        """Return the sources of rows of a table."""
        return self.sources(
            name for row in rows for name in (row["recordings"] if "recordings" in row else [row["recording"]])
        )


def _merged(rows: list[Row]) -> Row:
    """Merge rows into one; values that differ become `Several`."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = list(dict.fromkeys(row[name] for row in rows if not is_missing(row.get(name))))
        merged[name] = values[0] if len(values) == 1 else Several(values) or None
    return merged


def _with_drifts(summary: pd.DataFrame, saturation: pd.DataFrame) -> pd.DataFrame:
    """Extend the verdict of each soak that meets its steady-state limits while its level drifts."""
    drifting = saturation[~saturation["level_steady"].astype(bool)].set_index(["recording", "cell_label"])
    drifts = drifting["level_drift_pct"].to_dict()
    places = zip(summary["recordings"].str[0], summary["cell_label"], strict=True)
    verdicts = [
        f"{verdict} by its own limits, but level NOT steady: drift {percent(drifts[place], signed=True)}"
        if verdict == STEADY and place in drifts
        else verdict
        for verdict, place in zip(summary["verdict"], places, strict=True)
    ]
    return summary.assign(verdict=verdicts)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return rows as mappings; much faster than `to_dict` for text columns."""
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(frame.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def slug(name: str) -> str:
    """Convert a name to a part of a URL fragment."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "section"


def of_drive(rows: Iterable[Row], drive: str, side: str = "drive") -> Row | None:
    """Return the first row of a drive; None if there is none."""
    return next((row for row in rows if row[side] == drive), None)


_LATENCIES = ("mean_latency_us", "read_mean_latency_us", "write_mean_latency_us", "p50_latency_us", "p90_latency_us",
              "best_mean_latency_us")  # fmt: skip


def question_of(inputs: Inputs, measurement: str, metric: str) -> str:
    """Return the question that a value answers: by its measurement, else by its metric."""
    if any(inputs.where(table, measurement=measurement) for table in ("replays", "application_runs")):
        return APPLICATIONS
    if metric not in _LATENCIES and metric.endswith("_us"):
        return TAILS
    if inputs.where("saturation", measurement=measurement):
        return SATURATION
    return LATENCY if metric in _LATENCIES else THROUGHPUT


def main_question(inputs: Inputs, measurement: str) -> str:
    """Return the question of a measurement: that of the first variable by which it finds steady state, or of IOPS."""
    return question_of(inputs, measurement, next((metric for _, metric in inputs.tracked(measurement)), "iops"))
