"""Order the comparable recordings of a drive model: groups, points, tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.analysis.deltas.differences import NOT_RECORDED
from drivelab.analysis.deltas.doubts import without_load
from drivelab.core.errors import UserError, suggestion
from drivelab.core.grouping import grouped
from drivelab.core.units import counted, some
from drivelab.publish.comparability import REASONS, reasons
from drivelab.trend.sources import Recording, Sources

FIRST = "FIRST"
"""The baseline that is the first point."""
_REPEATS = re.compile(r"\b(median|mean|best) of \d+")
_LEAST, _MOST = 1e-12, 1e15
"""Values that a drive can have."""
_OWN = (*REASONS, "date", "host", "firmware", "serial", "model", "evidence", "drivelab")
"""Facets that are not listed as conditions that differ: they decide the comparison, or identify a recording."""


@dataclass(frozen=True)
class Point:
    """The recordings of one date, firmware or host, in the order of their start."""

    name: str
    recordings: Sequence[Recording]

    @property
    def drives(self) -> list[str]:
        """Return the names of its drives."""
        return list(dict.fromkeys(recording.drive for recording in self.recordings))


@dataclass(frozen=True)
class Group:
    """Comparable recordings of one protocol, as at least two points in order."""

    name: str
    protocol: str
    points: Sequence[Point]
    facets: Mapping[str, str]
    differing: Mapping[str, Sequence[str]]
    """Conditions that differ between its recordings, with their values."""

    @property
    def recordings(self) -> list[Recording]:
        """Return the recordings of all points."""
        return [recording for point in self.points for recording in point.recordings]

    @property
    def several_drives(self) -> bool:
        """Return whether the group has more than one drive: then the drive is the unit of replication."""
        return len({recording.identity for recording in self.recordings}) > 1


@dataclass(frozen=True)
class Key:
    """What identifies a test of a group."""

    cell_label: str
    metric: str
    kind: str
    unit: str


Values = dict[Key, list[list[tuple[Recording, Mapping[str, Any]]]]]
"""For each test the values of each point."""


def of_model(sources: Sources, model: str | None, drive: str | None) -> list[Recording]:
    """Return the recordings of one model, and of one of its drives if `drive` is given; others are left out.

    Raises UserError for an unknown model or drive, and without `model` for recordings of several models.
    """
    models = grouped(sources.recordings, lambda recording: str(recording.model["id"]))
    named = {key: model_name(recordings[0].model) for key, recordings in models.items()}
    wanted = model or ""
    chosen = [key for key, name in named.items() if wanted.casefold() in (key, name.casefold())] or [
        key for key, name in named.items() if wanted.casefold() in name.casefold()
    ]
    if not chosen:
        raise UserError(f"--model: '{wanted}' is unknown; {suggestion(wanted, named.values())}")
    if len(chosen) > 1:
        names = "; ".join(named[key] for key in chosen)
        raise UserError(f"the recordings are of {len(chosen)} models: {names}. Choose one with --model.")
    recordings = models[chosen[0]]
    for key in set(models) - set(chosen):
        for recording in models[key]:
            sources.left_out[recording.place] = f"another model: {named[key]}"
    if drive is None:
        return recordings
    drives = dict.fromkeys(recording.drive for recording in recordings)
    if drive not in drives:
        raise UserError(f"--drive: '{drive}' is unknown; {suggestion(drive, drives)}")
    for recording in recordings:
        if recording.drive != drive:
            sources.left_out[recording.place] = f"another drive: {recording.drive}"
    return [recording for recording in recordings if recording.drive == drive]


def groups_of(recordings: Sequence[Recording], by: str, sources: Sources) -> list[Group]:
    """Return the groups with at least two points; all other recordings are left out, with the reason.

    Raises UserError if there is none.
    """
    known = []
    for recording in recordings:
        if _point_of(recording, by) in ("", NOT_RECORDED):
            sources.left_out[recording.place] = f"its {by} is not recorded"
        elif not recording.started:
            sources.left_out[recording.place] = "its date is not recorded"
        else:
            known.append(recording)
    groups = []
    for protocol, of_protocol in grouped(known, lambda recording: recording.protocol).items():
        by_group = grouped(of_protocol, lambda recording: recording.group)
        largest = max(by_group, key=lambda name: (len(by_group[name]), by_group[name][-1].started))
        for name in sorted(by_group, key=lambda name: name != largest):
            points = _points(by_group[name], by)
            if len(points) > 1:
                groups.append(Group(name, protocol, points, by_group[name][0].facets, _differing(by_group[name])))
                continue
            why = "; ".join(reasons(by_group[largest][0].facets, by_group[name][0].facets))
            for recording in by_group[name]:
                sources.left_out[recording.place] = (
                    f"not comparable with the others by {protocol}: {why}" if why
                    else f"the only {by} by {protocol}"
                )  # fmt: skip
    if not groups:
        found = list(dict.fromkeys(_point_of(recording, by) for recording in known))
        raise UserError(
            f"a trend needs comparable recordings of at least two {by}s. There "
            f"{'is' if len(found) == 1 else 'are'} {counted(len(found), by)}"
            f"{f' ({some(found, 4)})' if found else ''} in {counted(len(recordings), 'recording')}"
            f"{_first_reason(sources)}. Name more results or archives, or choose another --by."
        )
    return groups


def baseline_of(groups: Sequence[Group], name: str, by: str) -> dict[str, str]:
    """Return the name of the baseline's point, by group.

    A group without the named point has its first one. Raises UserError if no group has it.
    """
    if name == FIRST:
        return {group.name: group.points[0].name for group in groups}
    points = list(dict.fromkeys(point.name for group in groups for point in group.points))
    if name not in points:
        raise UserError(f"--baseline: no recording has {by} '{name}'; {suggestion(name, points)}")
    return {
        group.name: name if any(point.name == name for point in group.points) else group.points[0].name
        for group in groups
    }


def values_of(group: Group, sources: Sources) -> Values:
    """Return the values of a group by test and point, in the order of their first appearance.

    Values that no drive has, and those of another statistic than most values of their test, are left out.
    """
    tests: dict[Key, list[list[tuple[Recording, Mapping[str, Any]]]]] = {}
    for place, point in enumerate(group.points):
        for recording in point.recordings:
            for row in recording.values:
                key = Key(*(str(row[name]) for name in ("cell_label", "metric", "kind", "unit")))
                if not _LEAST < float(row["value"]) < _MOST:
                    words = f"{recording.place}, {key.cell_label} {key.metric}"
                    sources.left_out[words] = "the value is not a positive number"
                    continue
                tests.setdefault(key, [[] for _ in group.points])[place].append((recording, row))
    for key, points in tests.items():
        counts = Counter(_statistic(row) for values in points for _, row in values)
        usual = max(counts, key=lambda statistic: counts[statistic])
        for place, values in enumerate(points):
            for recording, row in values:
                if _statistic(row) != usual:
                    words = f"{recording.place}, {key.cell_label} {key.metric}"
                    sources.left_out[words] = f"another statistic than the others: {_statistic(row)}, not {usual}"
            points[place] = [(recording, row) for recording, row in values if _statistic(row) == usual]
    return {key: points for key, points in tests.items() if sum(map(bool, points)) > 1}


def _statistic(row: Mapping[str, Any]) -> str:
    return _REPEATS.sub(r"\1 of N", without_load(str(row["statistic"])))


def _points(recordings: Sequence[Recording], by: str) -> list[Point]:
    ordered = sorted(recordings, key=lambda recording: (recording.started, recording.name))
    return [Point(name, of_point) for name, of_point in grouped(ordered, lambda one: _point_of(one, by)).items()]


def _point_of(recording: Recording, by: str) -> str:
    return recording.started[:10] if by == "date" else recording.firmware if by == "firmware" else recording.host


def _differing(recordings: Sequence[Recording]) -> dict[str, list[str]]:
    values: dict[str, dict[str, None]] = {}
    for recording in recordings:
        for facet, value in recording.conditions.items():
            if facet not in _OWN:
                values.setdefault(facet, {})[value] = None
    return {facet: list(several) for facet, several in values.items() if len(several) > 1}


def model_name(model: Mapping[str, Any]) -> str:
    """Return the name of a model with its capacity and what else tells it from others."""
    return f"{model['name']}{', ' * bool(model['details'])}{model['details']}".replace("\u00a0", " ")


def _first_reason(sources: Sources) -> str:
    return next((f"; left out, for instance: {name}: {why}" for name, why in sources.left_out.items()), "")
