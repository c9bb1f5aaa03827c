"""Judge the trend of a model: every point against the baseline, and changes of level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis import limits
from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table, paired
from drivelab.analysis.deltas.doubts import without_replication
from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.analysis.values.summary import pooled
from drivelab.analysis.verdict import CANNOT_TELL, FINE, IN_RECORDINGS, NOT_STEADY
from drivelab.core.grouping import grouped
from drivelab.publish.comparability import labels_of
from drivelab.report.numbers import is_missing
from drivelab.trend.series import FIRST, Group, Key, Values, baseline_of, groups_of, model_name, of_model, values_of
from drivelab.trend.sources import Recording, read_sources
from drivelab.trend.standing import Difference, LevelChange, Search, level_changes, searched, standing

_BASELINE = "the baseline"
"""Name of the baseline's point in the tables, as it may be another point of each group."""
Rows = Sequence[tuple[Recording, Mapping[str, Any]]]


@dataclass(frozen=True)
class Terms:
    """The terms of a trend."""

    by: str = "date"
    baseline: str = FIRST
    margin_pct: float = MARGIN_PCT
    confidence_pct: float = CONFIDENCE_PCT
    model: str | None = None
    drive: str | None = None


@dataclass(frozen=True)
class PointValue:
    """The value of a test at a point."""

    point: str
    value: float
    samples: Sequence[float]
    """Values of its recordings, or the means of its drives if the group has several."""
    low: float | None
    high: float | None
    """Confidence interval of the value alone; None for fewer than three samples."""
    recordings: Sequence[str]
    faults: Sequence[str]
    outcome: str
    """Verdict on the difference to the baseline, as in `drivelab.explore.compare`; empty for the baseline itself."""
    delta_pct: float | None
    delta_low_pct: float | None
    delta_high_pct: float | None
    """Positive: better than the baseline."""
    p_adjusted: float | None
    paired: bool
    """Whether each drive is compared with itself, because the baseline has the same drives."""
    doubts: Sequence[str]


@dataclass(frozen=True)
class Test:
    """The trend of one value."""

    group: str
    key: Key
    points: Sequence[PointValue]
    changes: Sequence[LevelChange]
    searched: str
    """Why no change of level was searched; empty if it was."""
    outcome: str
    """Verdict on the difference of the latest point, or of the latest level, to the baseline."""
    because: str
    """What decides the outcome: `latest point`, or `level since` and a point."""
    since_pct: float | None
    since_low_pct: float | None
    since_high_pct: float | None
    main: bool
    """Whether no other test of its cell says the same."""
    baseline: str


@dataclass(frozen=True)
class Trend:
    """The result."""

    model: str
    terms: Terms
    groups: Sequence[Group]
    baselines: Mapping[str, str]
    tests: Sequence[Test]
    labels: Sequence[str]
    left_out: Mapping[str, str]
    compared: int
    """Differences to the baseline that p-values are adjusted for."""
    in_pairs: int
    """Those of them between the same drives."""
    searched: int
    """Tests that the search for changes is adjusted for."""

    @property
    def shown(self) -> list[Test]:
        """Return the tests without those that say the same."""
        return [test for test in self.tests if test.main]


def trend(paths: Sequence[Path], terms: Terms) -> Trend:
    """Return the trend of the one model in results folders and archives.

    Raises UserError if the sources lack the model, the baseline or a second point, see `sources` and `series`.
    """
    sources = read_sources(paths)
    recordings = of_model(sources, terms.model, terms.drive)
    groups = groups_of(recordings, terms.by, sources)
    baselines = baseline_of(groups, terms.baseline, terms.by)
    alpha = 1 - terms.confidence_pct / 100
    values = {group.name: values_of(group, sources) for group in groups}
    deltas, summary = _deltas(groups, values, baselines, terms)
    searches = searched([(group, key, points) for group in groups for key, points in values[group.name].items()],
                        terms.by, alpha)  # fmt: skip
    tests = [
        _test(group, key, values[group.name][key], (_of(deltas, group, key), _of(summary, group, key)),
              baselines[group.name], searches[group.name, key], terms)
        for group in groups for key in values[group.name]
    ]  # fmt: skip
    main = main_values([Value(test.group, test.key.cell_label, test.key.metric) for test in tests])
    tests = [replace(test, main=place in main) for place, test in enumerate(tests)]
    return Trend(
        model_name(recordings[0].model),
        terms,
        groups,
        baselines,
        [test for test in tests if test.points],
        _labels(groups, tests),
        sources.left_out,
        _comparisons(tests),
        _comparisons(tests, only_paired=True),
        len(one_of_each((group, key.cell_label, key.metric) for (group, key), search in searches.items()
                        if not search.why_not)),
    )  # fmt: skip


def _comparisons(tests: Iterable[Test], *, only_paired: bool = False) -> int:
    """Return the number of differences with an adjusted p-value; twins, see `one_of_each`, are one."""
    return len(one_of_each((test.group, point.point, test.key.cell_label, test.key.metric)
                           for test in tests for point in test.points
                           if point.p_adjusted is not None and (point.paired or not only_paired)))  # fmt: skip


def _deltas(
    groups: Sequence[Group], values: Mapping[str, Values], baselines: Mapping[str, str], terms: Terms
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tables `deltas` of all points against the baseline, and `summary`, with the points in column `drive`."""
    summary = pooled(
        {**_row(group, _BASELINE if point.name == baselines[group.name] else point.name, key), **unit,
         "run": run}
        for group in groups
        for key, points in values[group.name].items()
        for point, of_point in zip(group.points, points, strict=True)
        for run, unit in enumerate(_units(group, of_point), start=1)
    )  # fmt: skip
    return (
        deltas_table(summary, _BASELINE, margin_pct=terms.margin_pct, confidence_pct=terms.confidence_pct,
                     same_units=True),
        summary,
    )  # fmt: skip


def _of(table: pd.DataFrame, group: Group, key: Key) -> pd.DataFrame:
    names = ("measurement", "cell_label", "metric")
    mask = np.logical_and.reduce([table[name] == value for name, value in
                                  zip(names, (group.name, key.cell_label, key.metric), strict=True)])  # fmt: skip
    return table[mask]


def _row(group: Group, point: str, key: Key) -> dict[str, Any]:
    nothing = dict.fromkeys(("rse_pct", "mad", "interval_low", "interval_high"))
    return {
        "drive": point, "measurement": group.name, "protocol": group.protocol, "cell_label": key.cell_label,
        "metric": key.metric, "kind": key.kind, "unit": key.unit, "n": 1, "scope": "recordings", "evidence": [],
        "reduced": group.facets["reduced"] == "yes", "virtual": group.facets["virtual"] == "yes",
        "clock": group.facets["clock"], **nothing,
    }  # fmt: skip


def _units(group: Group, values: Rows) -> list[dict[str, Any]]:
    """Return the units of replication of a point: its recordings, or the means of its drives if a group has several."""
    by_unit = grouped(values, lambda pair: pair[0].identity if group.several_drives else str(id(pair)))
    units = []
    for name, of_unit in sorted(by_unit.items()) if group.several_drives else by_unit.items():
        rows = [row for _, row in of_unit]
        value = math.exp(math.fsum(math.log(row["value"]) for row in rows) / len(rows))
        faults = [str(row["verdict"]) for row in rows if row["verdict"] not in FINE]
        approached = [row["asymptote_pct"] for row in rows]
        units.append(
            {"recording": name, "value": value, "samples": [value], "spread_low": value, "spread_high": value,
             "statistic": rows[0]["statistic"], "verdict": faults[0] if faults else rows[0]["verdict"],
             "taint_reason": next((row["taint_reason"] for row in rows if isinstance(row["taint_reason"], str)), None),
             "asymptote_pct": float(np.mean(approached)) if not any(map(is_missing, approached)) else None,
             "disturbance_pct": None}
        )  # fmt: skip
    return units


def _test(
    group: Group, key: Key, values: list[list[Any]], tables: tuple[pd.DataFrame, pd.DataFrame], baseline: str,
    search: Search, terms: Terms,
) -> Test:  # fmt: skip
    by_point = {row.comparison: row for row in tables[0].itertuples()}
    of_summary = {baseline if row.drive == _BASELINE else row.drive: row for row in tables[1].itertuples()}
    points = [
        _point(point.name, of_summary, by_point.get(point.name), of_point, baseline, group.several_drives)
        for point, of_point in zip(group.points, values, strict=True)
        if of_point
    ]
    latest = next((point for point in reversed(points) if point.point != baseline), None)
    last = None if latest is None else Difference(latest.outcome, latest.delta_pct, latest.delta_low_pct,
                                                  latest.delta_high_pct)  # fmt: skip
    names = [point.name for point in group.points]
    now = standing(last, names, baseline, search, key.kind, terms.margin_pct)
    return Test(group.name, key, points, level_changes(search, names, key.kind, terms.margin_pct), search.why_not,
                now.outcome, now.because, now.change_pct, now.low_pct, now.high_pct, True, baseline)  # fmt: skip


def _point(
    name: str, of_summary: Mapping[str, Any], delta: Any, values: Rows, baseline: str, several_drives: bool
) -> PointValue:
    value = of_summary[name]
    doubts = [str(doubt) for doubt in delta.doubts] if delta is not None else []
    unreplicated = delta is not None and delta.verdict == CANNOT_TELL and without_replication(doubts)
    outcome = "" if name == baseline else CANNOT_TELL if delta is None else delta.verdict
    if several_drives:
        doubts = [doubt.replace("recordings", "drives") for doubt in doubts]
    delta_pct, low_pct, high_pct, p_adjusted = (
        _number(getattr(delta, column)) if delta is not None else None
        for column in ("delta_pct", "interval_low_pct", "interval_high_pct", "p_adjusted")
    )
    return PointValue(
        name, float(value.value), [float(sample) for sample in value.samples],
        _number(value.interval_low), _number(value.interval_high),
        [recording.name for recording, _ in values],
        list(dict.fromkeys(str(row["verdict"]) for _, row in values if row["verdict"] not in FINE)),
        IN_RECORDINGS if unreplicated else outcome,
        delta_pct, low_pct, high_pct, p_adjusted,
        delta is not None and not is_missing(delta.log_error)
        and paired(of_summary[baseline].recordings, value.recordings), doubts,
    )  # fmt: skip


def _labels(groups: Sequence[Group], tests: Iterable[Test]) -> list[str]:
    of_groups = [labels_of(group.facets) for group in groups]
    points = [point for test in tests for point in test.points]
    concerned = {
        **{label: any(labels[label] for labels in of_groups) for label in of_groups[0]},
        limits.IMPORTED: all(limits.is_imported([recording.name]) for group in groups
                             for recording in group.recordings),
        limits.NOT_STEADY: any(NOT_STEADY in point.faults for point in points),
        limits.TAINTED: any(limits.TAINTED in point.faults for point in points),
        limits.HOST_LIMITED: any(limits.HOST_LIMITED in point.faults for point in points),
        limits.SINGLE_RECORDING: any(len(point.recordings) == 1 for point in points),
    }  # fmt: skip
    return [label for label in limits.LABELS if concerned.get(label)]


def _number(value: Any) -> float | None:
    return float(value) if not is_missing(value) and math.isfinite(value) else None
