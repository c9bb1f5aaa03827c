"""What a report is made from, as rows, and how to find what belongs to one test of one drive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from drivelab.analysis.labels import named
from drivelab.report.numbers import is_missing

Row = Mapping[str, Any]
Key = tuple[str, str]
"""Drive and measurement."""

NAMES = (
    "summary", "deltas", "steady_state", "cells", "replays", "replay_passes", "replay_operations", "replay_streams",
    "replay_mappings", "application_runs", "latency_bins", "drives", "hosts", "traces",
)  # fmt: skip


@dataclass(frozen=True)
class Inputs:
    """Rows by table, the study, and a plan for each recording."""

    tables: Mapping[str, list[Row]]
    study: Row
    plans: tuple[Row, ...]

    @classmethod
    def of(cls, tables: Mapping[str, Any], study: Row, plans: Sequence[Row]) -> Inputs:
        """From DataFrames; a table that is not there has no rows."""
        return cls(
            {name: tables[name].to_dict("records") if name in tables else [] for name in NAMES}, study, tuple(plans)
        )

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
    def _by_key(self) -> Mapping[tuple[str, Key], list[Row]]:
        found: dict[tuple[str, Key], list[Row]] = {}
        for name, rows in {**self.tables, "plans": self.plans}.items():
            for row in rows:
                if "drive" in row and "measurement" in row:
                    found.setdefault((name, (row["drive"], row["measurement"])), []).append(row)
        return found

    def of_key(self, table: str, key: Key) -> list[Row]:
        """Rows of a table that belong to one test of one drive."""
        return self._by_key.get((table, key), [])

    def labelled_cells(self, key: Key) -> list[Row]:
        """The cells of loops and soaks of one test of one drive, with `cell_label`, their name in the other tables."""
        rows = self.of_key("cells", key)
        return named(pd.DataFrame(rows)).to_dict("records") if rows else []

    def plans_of(self, key: Key) -> list[Row]:
        return self.of_key("plans", key)

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

    def tracked(self, measurement: str) -> list[tuple[str, str]]:
        """Variables, as (cell label, metric), whose steady state ended the loop, in the protocol's order."""
        windows = self.tables["steady_state"]
        return list(dict.fromkeys((r["variable"], r["metric"]) for r in windows if r["measurement"] == measurement))

    def sources(self, recordings: Iterable[Any]) -> tuple[str, ...]:
        """`recording (path)` for each recording, once."""
        paths = {plan["recording"]: plan.get("path") for plan in self.plans}
        return tuple(
            name if is_missing(paths.get(name)) else f"{name} ({paths[name]})"
            for name in dict.fromkeys(str(one) for one in recordings)
        )


def _merged(rows: list[Row]) -> Row:
    """One row of several: what they agree on, and the different values of the rest as text."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = list(dict.fromkeys(row[name] for row in rows if not is_missing(row.get(name))))
        merged[name] = values[0] if len(values) == 1 else " or ".join(map(str, values))
    return merged


def slug(name: str) -> str:
    """A name as part of a URL fragment."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "section"
