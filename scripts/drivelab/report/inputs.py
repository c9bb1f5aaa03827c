"""What a report is made from, as rows, and how to find what belongs to one test of one drive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from drivelab.analysis.exclusions import counted, left_out
from drivelab.analysis.soundness import sound
from drivelab.analysis.verdict import STEADY
from drivelab.report.numbers import is_missing, percent

Row = Mapping[str, Any]
Key = tuple[str, str]
"""Drive and measurement."""

NAMES = (
    "summary", "deltas", "steady_state", "cells", "replays", "replay_passes", "replay_operations", "replay_streams",
    "replay_mappings", "application_runs", "latency_bins", "drives", "hosts", "traces", "differences", "findings",
    "saturation", "exclusions",
)  # fmt: skip
_OF_A_TEST = ["drive", "measurement"]


class Several(tuple[Any, ...]):
    """The values that something had during the study which changed meanwhile."""

    def __str__(self) -> str:
        return " or ".join(map(str, self))


def each(show: Callable[[Any], str], value: Any) -> str:
    """A value as `show` has it; of several, each."""
    return str(Several(map(show, value))) if isinstance(value, Several) else show(value)


class Rows(Mapping[str, list[Row]]):
    """Tables as rows, each converted when it is first asked for: few readers need all of a large one."""

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
        """From DataFrames; a table that is not there has no rows.

        Cells that are unsound and recordings that are left out as a whole are in no table but that of the exclusions.
        """
        frames = {name: tables[name] for name in NAMES if name in tables}
        gone = left_out(frames["exclusions"]) if "exclusions" in frames else set()
        if gone:
            frames |= {
                name: counted(frame, frames["exclusions"])
                for name, frame in frames.items()
                if name != "exclusions" and "recording" in frame
            }
            plans = [plan for plan in plans if plan["recording"] not in gone]
        if len(frames.get("cells", ())):
            frames["cells"] = sound(frames["cells"])
        if len(frames.get("summary", ())) and len(frames.get("saturation", ())):
            frames["summary"] = _with_drifts(frames["summary"], frames["saturation"])
        return cls(Rows(frames), study, tuple(plans))

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Every test of every drive: test by test, drives in the order of the plans."""
        rows = [*self.plans, *self.tables["summary"]]
        found = dict.fromkeys((str(row["drive"]), str(row["measurement"])) for row in rows)
        tests = list(dict.fromkeys(measurement for _, measurement in found))
        return tuple(sorted(found, key=lambda key: tests.index(key[1])))

    @cached_property
    def drives(self) -> tuple[str, ...]:
        """Drives in the order of the plans, the basis of the deltas first."""
        found = list(dict.fromkeys(drive for drive, _ in self.keys))
        basis = self.study.get("basis")
        return tuple(sorted(found, key=lambda drive: drive != basis))

    @cached_property
    def measurements(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(measurement for _, measurement in self.keys))

    @cached_property
    def anchors(self) -> Mapping[Key, str]:
        """Name of the place of each page, unique and safe in a URL."""
        found: dict[Key, str] = {}
        for number, key in enumerate(self.keys, start=1):
            name = slug("-".join(key))
            found[key] = f"{name}-{number}" if name in found.values() else name
        return found

    @cached_property
    def _places(self) -> dict[str, Mapping[Key, Any]]:
        """Of each table, which rows belong to each test of each drive; filled as tables are asked for."""
        return {}

    @cached_property
    def _found(self) -> dict[str, Mapping[Key, list[Row]]]:
        return {}

    def frame(self, table: str) -> pd.DataFrame:
        """A whole table as it was given; without columns if it is not there."""
        return self.tables.frames.get(table, pd.DataFrame())

    def frame_of(self, table: str, key: Key) -> pd.DataFrame:
        """Rows of a table that belong to one test of one drive."""
        if table not in self._places:
            frame = self.frame(table)
            keyed = not frame.empty and set(_OF_A_TEST) <= set(frame.columns)
            found = frame.groupby(_OF_A_TEST, sort=False).indices if keyed else {}
            self._places[table] = {key: _together(places) for key, places in found.items()}
        return self.frame(table).iloc[self._places[table].get(key, slice(0))]

    def of_key(self, table: str, key: Key) -> list[Row]:
        """Rows of a table that belong to one test of one drive."""
        if table not in self._found:
            found: dict[Key, list[Row]] = {}
            for row in self.tables[table]:
                found.setdefault((row["drive"], row["measurement"]), []).append(row)
            self._found[table] = found
        return self._found[table].get(key, [])

    @cached_property
    def _plans(self) -> Mapping[Key, list[Row]]:
        found: dict[Key, list[Row]] = {}
        for plan in self.plans:
            found.setdefault((plan["drive"], plan["measurement"]), []).append(plan)
        return found

    def plans_of(self, key: Key) -> list[Row]:
        return self._plans.get(key, [])

    def drive(self, name: str) -> Row:
        """Identity of a drive; of one that changed during the study, all that it was."""
        return _merged([row for row in self.tables["drives"] if row["drive"] == name])

    def host(self, plans: Iterable[Row]) -> Row:
        """The host of these plans: the one that they name, or the only one there is."""
        hosts = self.tables["hosts"]
        named = {plan["host"] for plan in plans if not is_missing(plan.get("host"))}
        found = [row for row in hosts if row["host"] in named] if named else hosts
        return _merged(found) if len({row["host"] for row in found}) == 1 else {}

    def flag(self, key: Key, name: str) -> bool:
        """Whether a plan or a result of this test carries a flag, such as `reduced` or `virtual`."""
        return any(bool(row.get(name)) for row in [*self.plans_of(key), *self.of_key("summary", key)])

    def on_virtual_clock(self, key: Key) -> bool:
        return any(row.get("clock") == "virtual" for row in [*self.plans_of(key), *self.of_key("summary", key)])

    @cached_property
    def _tracked(self) -> Mapping[str, list[tuple[str, str]]]:
        found: dict[str, dict[tuple[str, str], None]] = {}
        for row in self.tables["steady_state"]:
            found.setdefault(row["measurement"], {})[row["variable"], row["metric"]] = None
        return {measurement: list(variables) for measurement, variables in found.items()}

    def tracked(self, measurement: str) -> list[tuple[str, str]]:
        """Variables, as (cell label, metric), whose steady state ended the loop, in the protocol's order."""
        return self._tracked.get(measurement, [])

    @cached_property
    def _summary(self) -> Mapping[tuple[str, str, str, str], Row]:
        found: dict[tuple[str, str, str, str], Row] = {}
        for row in self.tables["summary"]:
            found.setdefault((row["drive"], row["measurement"], row["cell_label"], row["metric"]), row)
        return found

    def summary_of(self, drive: str, measurement: str, cell_label: str, metric: str) -> Row | None:
        """The row of the summary for one value of a drive; None where it was not measured."""
        return self._summary.get((drive, measurement, cell_label, metric))

    @cached_property
    def _deltas(self) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.tables["deltas"]:
            found.setdefault(row["measurement"], []).append(row)
        return found

    def deltas_of(self, measurement: str) -> list[Row]:
        """The deltas of one measurement."""
        return self._deltas.get(measurement, [])

    @cached_property
    def _differences(self) -> Mapping[tuple[str, str, str], list[Row]]:
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.tables["differences"]:
            found.setdefault((row["measurement"], row["basis"], row["comparison"]), []).append(row)
        return found

    def differences_of(self, measurement: str, basis: str, comparison: str) -> list[Row]:
        """In what two compared drives differ, what was not meant to first."""
        return sorted(
            self._differences.get((measurement, basis, comparison), []), key=lambda row: bool(row["intended"])
        )

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Path of each recording, where it is known."""
        return {plan["recording"]: str(plan["path"]) for plan in self.plans if not is_missing(plan.get("path"))}

    def sources(self, recordings: Iterable[Any]) -> tuple[str, ...]:
        """`recording (path)` for each recording, once."""
        return tuple(
            f"{name} ({self.paths[name]})" if name in self.paths else name
            for name in dict.fromkeys(str(one) for one in recordings)
        )


def _together(places: Any) -> Any:
    """Numbers of rows, as a slice where they are next to each other: that copies nothing."""
    together = int(places[-1]) - int(places[0]) + 1 == len(places)
    return slice(int(places[0]), int(places[-1]) + 1) if together else places


def _merged(rows: list[Row]) -> Row:
    """One row of several: what they agree on, and of the rest the `Several` values."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = list(dict.fromkeys(row[name] for row in rows if not is_missing(row.get(name))))
        merged[name] = values[0] if len(values) == 1 else Several(values) or None
    return merged


def _with_drifts(summary: pd.DataFrame, saturation: pd.DataFrame) -> pd.DataFrame:
    """The summary with both truths of a soak that keeps the limits that it ends by, and whose level still drifts."""
    drifting = {(row["recording"], row["cell_label"]): row["level_drift_pct"]
                for row in rows_of(saturation[~saturation["level_steady"].astype(bool)])}  # fmt: skip
    verdicts = [
        f"{verdict} by its limits; level NOT steady, drift {percent(drifting[recordings[0], label], True)}"
        if verdict == STEADY and (recordings[0], label) in drifting
        else verdict
        for verdict, recordings, label in zip(
            *(summary[name] for name in ("verdict", "recordings", "cell_label")), strict=True
        )
    ]
    return summary.assign(verdict=verdicts)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Rows as mappings; what `to_dict` does, at a fraction of its time for columns of text."""
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(frame.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def slug(name: str) -> str:
    """A name as part of a URL fragment."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "section"
