"""Any recordings against any others: what was meant to differ, what else does, and each value with its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.delta_doubts import LOAD
from drivelab.analysis.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.analysis.differences import NOT_RECORDED, differences_table
from drivelab.analysis.exclusions import WHOLE, exclusions_table, left_out
from drivelab.analysis.multiple import one_of_each
from drivelab.analysis.repeats import THRESHOLD_PCT
from drivelab.analysis.summary import summary_table
from drivelab.analysis.verdict import DELTA_VERDICTS, NOT_COMPARED
from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.explore.asked import asked, differing_loads
from drivelab.explore.selection import Selector, catalogue, select
from drivelab.imported import IMPORTED
from drivelab.recording.places import home
from drivelab.tables import io
from drivelab.tables.conditions import conditions
from drivelab.tables.schemas import SCHEMAS

_MEANT: Mapping[str, tuple[str, ...]] = {
    "drive": ("drive",), "host": ("host", "setting"), "firmware": ("firmware",), "kernel": ("kernel",),
    "fio": ("fio",), "measurement": ("protocol",), "since": ("time",), "until": ("time",), "run": ("time",),
}  # fmt: skip
"""Kinds and facets that are meant to differ where the selectors differ in a key."""
_OF_PLATFORMS = ("host", "setting", "scenario", "write cache")
_PLACE = ["measurement", "cell_label", "metric"]
_TABLES = ("cells", "steady_state", "replays", "replay_passes", "application_runs")
_BIN_COLUMNS = ("recording", "step", "round", "direction", "latency_ns", "count")


@dataclass(frozen=True)
class Terms:
    """How values are judged."""

    margin_pct: float = MARGIN_PCT
    confidence_pct: float = CONFIDENCE_PCT
    rse_threshold_pct: float = THRESHOLD_PCT
    forbid: bool = False
    """Whether pairs that differ in something that was not meant to are not compared."""


@dataclass(frozen=True)
class Comparison:
    """What came out; `basis` and `comparison` are the selectors' texts, and what the tables call the two sides."""

    basis: str
    comparison: str
    terms: Terms
    meant: tuple[str, ...]
    """Kinds and facets that were meant to differ."""
    deltas: pd.DataFrame
    differences: pd.DataFrame
    exclusions: pd.DataFrame
    recordings: Mapping[str, tuple[str, ...]]
    """By side, those that count."""
    unknown: tuple[str, ...]
    """Facets that are recorded on neither side: nobody knows whether they differ."""
    alone: Mapping[str, tuple[str, ...]]
    """By side, values that the other side has not: cell and metric, after the measurement where there are several."""
    measurements: Mapping[str, str]
    """By side, its one measurement, where they differ: they are compared cell by cell. Empty else."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of comparisons by verdict, twins counted by the first of them: see `drivelab.analysis.multiple`.

        All verdicts that there can be, but for those that nothing was forbidden by.
        """
        found = _once_each(self.deltas)["verdict"].value_counts()
        wanted = [one for one in DELTA_VERDICTS if one != NOT_COMPARED or one in found]
        return {one: int(found.get(one, 0)) for one in wanted}

    @property
    def tested(self) -> int:
        """Number of comparisons that p-values are adjusted for."""
        return len(_once_each(self.deltas[self.deltas["p_adjusted"].notna()]))

    @property
    def unintended(self) -> pd.DataFrame:
        """Rows of `differences` that were not meant."""
        return self.differences[~self.differences["intended"].astype(bool)]


@dataclass(frozen=True)
class _Side:
    name: str
    summary: pd.DataFrame
    conditions: pd.DataFrame
    exclusions: pd.DataFrame
    asked: pd.DataFrame
    """Columns of `drivelab.analysis.delta_doubts.ASKED`, with the index of `summary`."""


def _once_each(deltas: pd.DataFrame) -> pd.DataFrame:
    """The rows that stand for their twins too."""
    return deltas.iloc[one_of_each(zip(*(deltas[name] for name in _PLACE), strict=True))]


def compare(basis: Selector, comparison: Selector, results: Path, terms: Terms) -> Comparison:
    """Compare what two selectors select, in `results` where they name no folder of their own.

    Each side is pooled as in the table `summary`, of a measurement only recordings by the plan of the latest. Values
    are compared measurement by measurement; where each side has just one, cell by cell, whatever they are called.
    Raises UserError when a side is empty, both are one, or there is no value that both have.
    """
    if basis.text == comparison.text:
        raise UserError(f"'{basis.text}' is on both sides; name something else to compare it with")
    chosen = [(one, one.folder or results) for one in (basis, comparison)]
    rows = [select(catalogue(folder), one) for one, folder in chosen]
    both = set(rows[0]["digests"].explode()) & set(rows[1]["digests"].explode())
    if both:
        name = rows[0].loc[[bool(both & set(one)) for one in rows[0]["digests"]], "recording"].iloc[0]
        raise UserError(f"both sides have the recording {name}; narrow one of them, for instance by measurement or run")
    sides = [_side(one, folder, of, terms) for (one, folder), of in zip(chosen, rows, strict=True)]
    names_of = {one.name: sorted(set(one.summary["measurement"])) for one in sides}
    sides = _of_one_measurement(sides)
    meant = meant_to_differ(basis, comparison)
    known = pd.concat([one.conditions for one in sides], ignore_index=True)
    facets = {*known["facet"], *known["kind"], "time", "drive", "host", "setting", "protocol"}
    names = (basis.text, comparison.text)
    differences = differences_table(known, [names], [one for one in meant if one in facets])
    loads = differing_loads(*((one.name, one.summary, one.asked) for one in sides), meant="protocol" in meant)
    differences = pd.concat([differences, loads], ignore_index=True)
    summary = pd.concat([one.summary for one in sides], ignore_index=True)
    paired = _paired(names_of)
    found = pd.concat([one.asked for one in sides], ignore_index=True)
    # within a measurement, conditions that differ are told apart, and forbidden by whoever forbids them
    deltas = _deltas(summary, basis.text, terms, differences, found if paired else found[[LOAD]])
    if deltas.empty:
        raise UserError(_nothing_in_common(sides))
    return Comparison(
        *names,
        terms,
        meant,
        deltas,
        differences,
        pd.concat([one.exclusions for one in sides], ignore_index=True),
        {one.name: tuple(dict.fromkeys(one.summary["recordings"].explode())) for one in sides},
        _unknown(known, names),
        _alone(sides),
        paired,
    )


def meant_to_differ(basis: Selector, comparison: Selector) -> tuple[str, ...]:
    """Kinds and facets, as of table `conditions`, that two selectors ask to differ: of the keys that differ."""
    found: dict[str, None] = {}
    for key, facets in _MEANT.items():
        values = [one.wanted.get(key, "") for one in (basis, comparison)]
        if key == "drive" and "@" in "".join(values):
            drives, platforms = ({value.partition("@")[part] for value in values} for part in (0, 2))
            found |= dict.fromkeys(facets if len(drives) > 1 else ())
            found |= dict.fromkeys(_OF_PLATFORMS if len(platforms) > 1 else ())
        elif values[0] != values[1]:
            found |= dict.fromkeys(facets)
    return tuple(found)


def _unknown(known: pd.DataFrame, sides: tuple[str, str]) -> tuple[str, ...]:
    """Facets that no side has a value of in any measurement that both have."""
    of_sides = [set(known.loc[known["drive"] == side, "measurement"]) for side in sides]
    shared = known[known["measurement"].isin(of_sides[0] & of_sides[1])]
    recorded = set(shared.loc[shared["value"] != NOT_RECORDED, "facet"])
    return tuple(one for one in dict.fromkeys(shared["facet"]) if one not in recorded)


def _alone(sides: list[_Side]) -> dict[str, tuple[str, ...]]:
    places = {one.name: _named(one.summary) for one in sides}
    common = set.intersection(*map(set, places.values()))
    return {side: tuple(name for place, name in of.items() if place not in common) for side, of in places.items()}


def _named(summary: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Name of each value by measurement, cell and metric."""
    several = summary["measurement"].nunique() > 1
    places = dict.fromkeys(zip(*(summary[name] for name in _PLACE), strict=True))
    return {one: " ".join(one if several else one[1:]) for one in places}


def _nothing_in_common(sides: list[_Side]) -> str:
    """Why there is nothing to compare, and what to choose."""
    both = sides[0].summary.merge(sides[1].summary, on=_PLACE, suffixes=("_basis", "_comparison"))
    names = f"'{sides[0].name}' and '{sides[1].name}'"
    if len(both):
        first = both.iloc[0]
        words = " and ".join(dict.fromkeys((first["protocol_basis"], first["protocol_comparison"])))
        return (
            f"{names} have measurements of one name, {first['measurement']}, by different protocols, {words}; choose "
            "one measurement on each side, and they are compared cell by cell"
        )
    return (
        f"{names} have no value in common; choose the same measurements, such as measurement=pts-iops on both, or "
        "one on each side, which are then compared cell by cell"
    )


def _deltas(
    summary: pd.DataFrame, basis: str, terms: Terms, differences: pd.DataFrame, asked_of: pd.DataFrame
) -> pd.DataFrame:
    return deltas_table(
        summary,
        basis,
        margin_pct=terms.margin_pct,
        confidence_pct=terms.confidence_pct,
        differences=differences,
        unintended="forbid" if terms.forbid else "show",
        asked=asked_of,
    )


def _side(selector: Selector, results: Path, chosen: pd.DataFrame, terms: Terms) -> _Side:
    name = selector.text
    if (results / IMPORTED).exists():
        tables = {one: io.read(results / f"tables/{one}.parquet", one) for one in ("summary", "conditions")}
        names = set(chosen["recording"])
        summary = tables["summary"]
        summary = summary[[bool(names & set(one)) for one in summary["recordings"]]]
        of = tables["conditions"][tables["conditions"]["recording"].isin(names)]
        nothing = pd.DataFrame(columns=SCHEMAS["exclusions"].names)
        cells = io.read([path for path in [results / "tables/cells.parquet"] if path.exists()], "cells")
        found = asked(summary, cells[cells["recording"].isin(names)], of, measured=False)
        return _Side(name, summary.assign(drive=name), of.assign(drive=name), nothing, found)
    other_plans = _by_other_plans(chosen)
    kept = chosen[~chosen["recording"].isin({row["recording"] for row in other_plans})]
    paths = {one: home(results, one) / "tables" / one for one in kept["recording"]}
    tables = {table: io.read([path / f"{table}.parquet" for path in paths.values()], table) for table in _TABLES}
    exclusions = exclusions_table(
        tables["cells"], kept, other_plans, **{name: tables[name] for name in ("replays", "application_runs")}
    )
    gone = left_out(exclusions)
    counted = [one for one in kept["recording"] if one not in gone]
    tables = {table: rows[rows["recording"].isin(counted)] for table, rows in tables.items()}
    bins = io.read_part(
        [paths[one] / "latency_bins.parquet" for one in counted], "latency_bins", _BIN_COLUMNS, ("kind", "soak")
    )
    scores = {
        one.measurement: _score(one.protocol) for one in tables["cells"].drop_duplicates("measurement").itertuples()
    }
    summary = summary_table(**tables, rse_threshold_pct=terms.rse_threshold_pct, soak_bins=bins, scores=scores)
    reduced = tables["cells"].groupby("recording")["reduced"].any()
    altered = {one: ["shortened or altered"] for one in reduced.index[reduced]}
    of = conditions([home(results, one) / "recordings" / one for one in counted], altered, tables["cells"])
    found = asked(summary, tables["cells"], of, measured=True)
    return _Side(name, summary.assign(drive=name), of.assign(drive=name), exclusions, found)


def _by_other_plans(chosen: pd.DataFrame) -> list[dict[str, Any]]:
    """Recordings of a measurement by another plan than the latest: they measured something else."""
    rows = []
    for _, of in chosen.groupby("measurement", sort=False):
        latest = of.sort_values("finished", kind="stable").iloc[-1]
        for one in of[of["digest"] != latest["digest"]].to_dict("records"):
            key = {name: one[name] for name in ("recording", "drive", "measurement")}
            words = f"made by another plan than the latest, {latest['recording']}: not pooled with it"
            rows.append({**key, "place": WHOLE, "fault": "mixed versions", "words": words})
    return rows


def _paired(names: Mapping[str, list[str]]) -> dict[str, str]:
    """By side its one measurement, where they differ."""
    both = [one for of_side in names.values() for one in of_side]
    return {side: of_side[0] for side, of_side in names.items()} if len(both) == len({*both}) == len(names) == 2 else {}


def _of_one_measurement(sides: list[_Side]) -> list[_Side]:
    """With one measurement on each side both are called as that of the basis, by its protocol."""
    firsts = [one.summary[["measurement", "protocol"]].drop_duplicates() for one in sides]
    if any(one["measurement"].nunique() != 1 for one in firsts):
        return sides
    key = firsts[0].iloc[0].to_dict()
    return [
        replace(
            one,
            summary=one.summary.assign(**key),
            conditions=one.conditions.assign(measurement=key["measurement"]),
        )
        for one in sides
    ]


def _score(protocol: str) -> dict[str, str]:
    """How a protocol condenses its cells; nothing where the protocol is no longer there."""
    path = ROOT / "config/protocols" / f"{protocol}.yaml"
    return dict(load_yaml(path).get("analysis", {})) if path.exists() else {}
