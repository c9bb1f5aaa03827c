"""Compare any recordings with any others: differences, and a verdict per value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.analysis.deltas.differences import (
    OF_PLATFORMS,
    differences_table,
    forbidden,
    known_differences,
    not_recorded,
)
from drivelab.analysis.deltas.doubts import LOAD, without_replication
from drivelab.analysis.deltas.inference import adjusted, one_of_each
from drivelab.analysis.deltas.judging import judged
from drivelab.analysis.limits import limited
from drivelab.analysis.verdict import CANNOT_TELL, DELTA_VERDICTS, IN_RECORDINGS
from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.criteria.repeats import FEWEST, THRESHOLD_PCT
from drivelab.explore.row_selection import Selector, catalogue, select
from drivelab.explore.side import Side, differing_loads, named_by_load, side_of
from drivelab.recording.writer import read_object
from drivelab.tables.labels import loads_of

_MEANT: Mapping[str, tuple[str, ...]] = {
    "drive": ("drive",), "host": ("host", "setting"), "firmware": ("firmware",), "kernel": ("kernel",),
    "fio": ("fio",), "measurement": ("protocol",), "date": ("time",), "since": ("time",), "until": ("time",),
    "run": ("time",),
}  # fmt: skip
"""Kinds and facets that are meant to differ if the selectors differ in a key."""
WITHIN_DATES = "within these dates (how much a drive differs between dates is not known)"
"""The label of a comparison between dates."""
_PLACE = ["measurement", "cell_label", "metric"]


@dataclass(frozen=True)
class Terms:
    """The terms of the verdicts."""

    margin_pct: float = MARGIN_PCT
    confidence_pct: float = CONFIDENCE_PCT
    rse_threshold_pct: float = THRESHOLD_PCT
    forbid: bool = False
    """Whether pairs with an unintended difference are left uncompared."""
    level: str = ""
    """Why the confidence of the study no longer holds."""


@dataclass(frozen=True)
class Comparison:
    """The result. `basis` and `comparison` are the selectors' texts, which name the two sides in the tables."""

    basis: str
    comparison: str
    terms: Terms
    meant: tuple[str, ...]
    """Kinds and facets that were meant to differ."""
    deltas: pd.DataFrame
    """Table `deltas` with the column `outcome`: the verdict, or IN_RECORDINGS for a difference without replication."""
    differences: pd.DataFrame
    """Table `differences`: conditions that differ, and those that are not recorded on one or both sides."""
    exclusions: pd.DataFrame
    recordings: Mapping[str, tuple[str, ...]]
    """The recordings that count, by side."""
    alone: Mapping[str, tuple[str, ...]]
    """Values that the other side lacks, by side: cell and metric, preceded by the measurement if there are several."""
    measurements: Mapping[str, str]
    """The single measurement of each side, if they differ: these are compared cell by cell. Otherwise empty."""
    labels: tuple[str, ...]
    """What limits the numbers of a side, such as `reduced`."""
    loads: Mapping[tuple[str, str], str]
    """Threads and queue depth, such as `T1Q8`, by measurement and cell label; without unknown and different ones."""
    values: pd.DataFrame
    """Table `summary` of both sides; `drive` is the side."""
    folders: Mapping[str, Path]
    """The results folder of each side."""
    tested: int
    """Number of comparisons that p-values are adjusted for, with those of other sides with the same basis."""

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of comparisons by outcome; twins count once, see `drivelab.analysis.deltas.inference`."""
        counts = _once_each(self.deltas)["outcome"].value_counts()
        return {outcome: int(counts[outcome]) for outcome in (*DELTA_VERDICTS, IN_RECORDINGS) if outcome in counts}

    @property
    def intended(self) -> pd.DataFrame:
        """Return the rows of `differences` that differ, by intention or without effect."""
        return known_differences(self.differences).query("intended")

    @property
    def unintended(self) -> pd.DataFrame:
        """Return the rows of `differences` that differ, but not by intention."""
        return known_differences(self.differences).query("not intended")

    @property
    def not_recorded(self) -> pd.DataFrame:
        """Return the rows of `differences` that are not recorded on one or both sides, each facet once."""
        return not_recorded(self.differences).drop_duplicates("facet")

    @property
    def forbidden(self) -> bool:
        """Return whether something is not known to be equal that should be, see `differences.forbidden`."""
        return not forbidden(self.differences).empty


def _once_each(deltas: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each comparison; twins have one row."""
    return deltas.iloc[one_of_each(zip(*(deltas[name] for name in _PLACE), strict=True))]


def compare(selectors: Sequence[Selector], results: Path, terms: Terms) -> list[Comparison]:
    """Compare what each selector selects with the first, the basis, in `results` unless a selector names a folder.

    Each side is pooled as in the table `summary`; of a measurement, only recordings by the latest plan count. Values
    are compared measurement by measurement. If both sides have a single measurement, these are compared cell by cell,
    whatever their names. With several selectors, p-values are adjusted for all comparisons together. Raises UserError
    if a side is empty, two selectors are the same, or a side shares recordings, or no value, with the basis.
    """
    texts = [selector.text for selector in selectors]
    if repeated := next((text for text in texts if texts.count(text) > 1), None):
        raise UserError(f"'{repeated}' is on both sides; choose something else for one side")
    chosen = [(selector, selector.folder or results) for selector in selectors]
    rows = [select(catalogue(folder), selector) for selector, folder in chosen]
    digests = [set(recordings["digests"].explode()) for recordings in rows]
    for text, others in zip(texts[1:], digests[1:], strict=True):
        if shared := digests[0] & others:
            name = rows[0].loc[[bool(shared & set(own)) for own in rows[0]["digests"]], "recording"].iloc[0]
            raise UserError(
                f"'{texts[0]}' and '{text}' both have the recording {name}; narrow one of them, for instance by "
                "measurement or run"
            )
    sides = [
        side_of(selector, folder, recordings, terms.rse_threshold_pct)
        for (selector, folder), recordings in zip(chosen, rows, strict=True)
    ]
    comparisons = [
        _compared([sides[0], side], meant_to_differ(selectors[0], selector), terms)
        for selector, side in zip(selectors[1:], sides[1:], strict=True)
    ]
    return comparisons if len(comparisons) == 1 else _judged_together(comparisons, terms.confidence_pct)


def study_terms(folders: Iterable[Path]) -> dict[str, Any]:
    """Return the terms by which the study with this results folder was judged: of a growing one, at its last look.

    Empty for several folders, and without an analysis.
    """
    one = {folder.resolve() for folder in folders}
    paths = [path for folder in one for path in folder.glob("facts/analysis-*.json")] if len(one) == 1 else []
    every = [{**facts, **facts.get("comparison", {})} for facts in map(read_object, paths)]
    names = ("margin_pct", "confidence_pct", "rse_threshold_pct", "level")
    return {name: facts[name] for facts in every for name in names if name in facts}


def _compared(sides: list[Side], meant: tuple[str, ...], terms: Terms) -> Comparison:
    """Compare two sides, the basis first; `meant` are the kinds and facets that differ by intention."""
    measurements = [sorted(set(side.summary["measurement"])) for side in sides]
    different = measurements[0] != measurements[1] and [len(names) for names in measurements] == [1, 1]
    sides = _named_alike(_of_one_measurement(sides))
    basis, comparison = (side.name for side in sides)
    known, summary, workloads, exclusions, cells = (
        pd.concat([getattr(side, name) for side in sides], ignore_index=True)
        for name in ("conditions", "summary", "workloads", "exclusions", "cells")
    )
    started = {**sides[0].started, **sides[1].started}
    facets = {*known["facet"], *known["kind"], "time", "drive", "host", "setting", "protocol"}
    of_conditions = differences_table(known, [(basis, comparison)], [facet for facet in meant if facet in facets])
    loads = differing_loads(*sides, intended="protocol" in meant)
    differences = pd.concat([of_conditions, loads], ignore_index=True)
    deltas = deltas_table(
        summary,
        basis,
        margin_pct=terms.margin_pct,
        confidence_pct=terms.confidence_pct,
        differences=differences,
        unintended="forbid" if terms.forbid else "show",
        started=started if len({side.folder.resolve() for side in sides}) == 1 else None,  # paired as in the study
        # within one measurement, the table of differences already has the other facets, and `forbid` applies to them
        workloads=workloads if different else workloads[[LOAD]],
    )
    if deltas.empty:
        raise UserError(_nothing_in_common(sides))
    limits = limited(summary.merge(deltas[_PLACE].drop_duplicates()), known)
    dated = filter(None, (terms.level, WITHIN_DATES if _between_dates(known) else ""))
    of_sides = {label: list(dict.fromkeys(rows["drive"])) for label, rows in limits.items()}
    return Comparison(
        basis=basis,
        comparison=comparison,
        terms=terms,
        meant=meant,
        deltas=_with_outcomes(deltas),
        differences=differences,
        exclusions=exclusions,
        recordings={side.name: tuple(dict.fromkeys(side.summary["recordings"].explode())) for side in sides},
        alone=_alone(sides),
        measurements={side.name: names[0] for side, names in zip(sides, measurements, strict=True) if different},
        labels=(*dated, *(label if len(names) > 1 else f"{label} ({names[0]})" for label, names in of_sides.items())),
        loads=loads_of(cells),
        values=summary,
        folders={side.name: side.folder for side in sides},
        tested=len(_once_each(deltas[deltas["p_adjusted"].notna()])),
    )


def _between_dates(conditions: pd.DataFrame) -> bool:
    """Return whether no day is common to both sides of a measurement, and days are not in the scatter of both."""
    dates = conditions[conditions["facet"] == "date"].groupby(["measurement", "drive"])["value"].agg(list)
    return any(
        not {*one} & {*other}
        and not all(len({*days}) == len(days) >= FEWEST for days in (one, other))  # a day for each: they scatter alike
        for one, other in dates.unstack().dropna().to_numpy()
    )


def _judged_together(comparisons: Sequence[Comparison], confidence_pct: float) -> list[Comparison]:
    """Return comparisons with verdicts by p-values that are adjusted for all of them."""
    deltas = pd.concat([comparison.deltas for comparison in comparisons], ignore_index=True)
    testable, alpha = deltas["p_adjusted"].notna(), 1 - confidence_pct / 100
    cells = [deltas[name] for name in ("comparison", "measurement", "cell_label")]
    difference, equivalence = (
        adjusted(deltas[name].where(testable).astype(float), cells, deltas["metric"], level)
        for name, level in (("p_value", alpha), ("equivalence_p", alpha / 2))
    )
    deltas = _with_outcomes(judged(deltas, difference, equivalence, confidence_pct))
    tested = sum(comparison.tested for comparison in comparisons)
    by_side = {side: rows.reset_index(drop=True) for side, rows in deltas.groupby("comparison")}
    return [replace(comparison, deltas=by_side[comparison.comparison], tested=tested) for comparison in comparisons]


def meant_to_differ(basis: Selector, comparison: Selector) -> tuple[str, ...]:
    """Return the kinds and facets that differ by intention: those of unequal keys."""
    meant: dict[str, None] = {}
    for key, facets in _MEANT.items():
        values = [selector.wanted.get(key, "") for selector in (basis, comparison)]
        if key == "drive" and "@" in "".join(values):
            drives, platforms = ({value.partition("@")[part] for value in values} for part in (0, 2))
            meant |= dict.fromkeys(facets if len(drives) > 1 else ())
            meant |= dict.fromkeys(OF_PLATFORMS if len(platforms) > 1 else ())
        elif values[0] != values[1]:
            meant |= dict.fromkeys(facets)
    return tuple(meant)


def _with_outcomes(deltas: pd.DataFrame) -> pd.DataFrame:
    """Add the column `outcome`: the verdict, or IN_RECORDINGS if there are too few recordings for one."""
    few = deltas["doubts"].map(without_replication).astype(bool)
    unreplicated = (deltas["verdict"] == CANNOT_TELL) & deltas["delta_pct"].notna() & few
    return deltas.assign(outcome=deltas["verdict"].mask(unreplicated, IN_RECORDINGS))


def _alone(sides: Sequence[Side]) -> dict[str, tuple[str, ...]]:
    by_side = {side.name: _named(side.summary) for side in sides}
    common = set.intersection(*map(set, by_side.values()))
    return {name: tuple(words for place, words in of_side.items() if place not in common)
            for name, of_side in by_side.items()}  # fmt: skip


def _named(summary: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Return {(measurement, cell, metric): name} of each value."""
    several = summary["measurement"].nunique() > 1
    places = dict.fromkeys(zip(*(summary[name] for name in _PLACE), strict=True))
    return {place: " ".join(place if several else place[1:]) for place in places}


def _nothing_in_common(sides: list[Side]) -> str:
    """Say why there is nothing to compare, and what to choose."""
    both = sides[0].summary.merge(sides[1].summary, on=_PLACE, suffixes=("_basis", "_comparison"))
    names = f"'{sides[0].name}' and '{sides[1].name}'"
    if len(both):
        first = both.iloc[0]
        protocols = " and ".join(dict.fromkeys((first["protocol_basis"], first["protocol_comparison"])))
        return (
            f"{names} have a measurement {first['measurement']} by different protocols, {protocols}; choose one "
            "measurement on each side to compare them cell by cell"
        )
    have = "; ".join(f"'{side.name}' has {some(tuple(_named(side.summary).values()), 3)}" for side in sides)
    if all(side.summary["measurement"].nunique() == 1 for side in sides):
        return f"nothing to compare: {have}; name recordings that share a workload"
    return (
        f"nothing to compare: {have}; choose the same measurements on both, such as measurement=pts-iops, or one on "
        "each side to compare them cell by cell"
    )


def _named_alike(sides: list[Side]) -> list[Side]:
    """Name cells by their load on both sides, if one side does."""
    labels = [frozenset(side.summary["cell_label"]) for side in sides]
    return [
        replace(side, summary=named_by_load(side.summary, side.workloads, others))
        for side, others in zip(sides, reversed(labels), strict=True)
    ]


def _of_one_measurement(sides: list[Side]) -> list[Side]:
    """If each side has a single measurement, give both the basis's name and protocol."""
    firsts = [side.summary[["measurement", "protocol"]].drop_duplicates() for side in sides]
    if any(first["measurement"].nunique() != 1 for first in firsts):
        return sides
    key = firsts[0].iloc[0].to_dict()
    return [
        replace(
            side, summary=side.summary.assign(**key), conditions=side.conditions.assign(measurement=key["measurement"])
        )
        for side in sides
    ]
