"""The table `exclusions`: all that is left out of every result, by name and with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.labels import named_with_unsound
from drivelab.analysis.soundness import (
    DUPLICATED,
    FAULTS,
    MISSING_ROUND,
    MISSING_SLICE,
    MIXED_VERSIONS,
    missing_cells,
    split,
)
from drivelab.tables.schemas import SCHEMAS

WHOLE = "recording"
"""Place of what leaves out a recording as a whole."""
VERSIONS = ("fio", "kernel", "firmware")
"""What must be the same of recordings whose values are pooled."""
_MISSING = {
    "loop": (MISSING_ROUND, "it is not in the journal"),
    "soak": (MISSING_SLICE, "there is no evidence of it"),
}

Row = Mapping[str, Any]


def exclusions_table(
    cells: pd.DataFrame,
    recordings: pd.DataFrame,
    strangers: Iterable[Row] = (),
    *,
    replays: pd.DataFrame | None = None,
    application_runs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Table `exclusions` of a study from its table `cells`, unsound rows included.

    `recordings` has a row for each recording in the study's order, as `drivelab.tables.facts` makes it: recording,
    drive, measurement, finished (ISO 8601), the VERSIONS, `digests` of its evidence, `cells` that its manifest counts
    (null without one) and `journalled` ones. `strangers` are rows of the table for folders that are none of the
    study's; `replays` and `application_runs` are the tables of these names. A recording with the evidence of an
    earlier one is left out, and of several that would be pooled for one value, those whose versions are not the
    latest's.
    """
    rows = [*strangers]
    duplicates = list(_duplicates(recordings))
    known = {row["recording"] for row in duplicates}
    rows += duplicates + _of_other_versions(recordings[~recordings["recording"].isin(known)])
    missing = missing_cells(cells)
    rows += [*_of_cells(cells, missing), *_of_runs(replays), *_of_runs(application_runs)]
    rows += _uncounted(missing, recordings)
    return pd.DataFrame(rows, columns=SCHEMAS["exclusions"].names)


def left_out(exclusions: pd.DataFrame) -> set[str]:
    """Names of the recordings that count nowhere as a whole."""
    return set(exclusions.loc[exclusions["place"] == WHOLE, "recording"])


def counted(table: pd.DataFrame, exclusions: pd.DataFrame) -> pd.DataFrame:
    """Rows of a table of recordings without those that are left out as a whole."""
    return table[~table["recording"].isin(left_out(exclusions))].reset_index(drop=True)


def _row(one: Any, place: str, fault: str, words: str) -> dict[str, Any]:
    key = {name: str(one[name]) for name in ("recording", "drive", "measurement")}
    return {**key, "place": place, "fault": fault, "words": words}


def _duplicates(recordings: pd.DataFrame) -> Iterable[dict[str, Any]]:
    firsts: dict[str, str] = {}
    for one in recordings.to_dict("records"):
        first = next((firsts[digest] for digest in one["digests"] if digest in firsts), None)
        firsts.update(dict.fromkeys(one["digests"], first or one["recording"]))
        if first is not None:
            yield _row(one, WHOLE, DUPLICATED, f"its evidence is that of {first}, which counts")


def _of_other_versions(recordings: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for _, pooled in recordings.groupby(["drive", "measurement"], sort=False):
        latest = pooled.sort_values("finished", kind="stable").iloc[-1]
        for one in pooled.to_dict("records"):
            other = [f"{name} {one[name]} and not {latest[name]}" for name in VERSIONS if one[name] != latest[name]]
            if other:
                words = f"made with {', '.join(other)} as the latest, {latest['recording']}: not pooled with it"
                rows.append(_row(one, WHOLE, MIXED_VERSIONS, words))
    return rows


def _of_cells(cells: pd.DataFrame, missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Unsound cells and those that are not there, in the order of the recordings and of time."""
    bad = cells[cells["unsound"].notna()]
    if bad.empty and missing.empty:
        return []
    concerned = cells[cells["recording"].isin({*bad["recording"], *missing["recording"]})]
    named = named_with_unsound(concerned)
    first = named.drop_duplicates(["recording", "step", "kind", "cell"])
    labels = {(r.recording, r.step, r.kind, r.cell): r for r in first.itertuples()}
    found = [
        (one, *split(one.unsound)) for one in named[named["unsound"].notna()].itertuples()
    ] + [(one, *_MISSING[one.kind]) for one in missing.itertuples()]  # fmt: skip
    order = {name: number for number, name in enumerate(concerned["recording"].unique())}
    found.sort(key=lambda item: (order[item[0].recording], item[0].step, item[0].round, item[0].cell))
    rows = []
    for one, fault, words in found:
        of = labels[one.recording, one.step, one.kind, one.cell]
        key = {"recording": of.recording, "drive": of.drive, "measurement": of.measurement}
        where = f"{'round' if one.kind == 'loop' else 'slice'} {one.round}, {of.cell_label}"
        rows.append(_row(key, where, fault, words))
    return rows


def _of_runs(runs: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Replays or runs of applications that are tainted because their numbers are no measurement."""
    if runs is None or runs.empty:
        return []
    rows = []
    for one in runs[runs["taint_reason"].notna()].to_dict("records"):
        fault, words = split(str(one["taint_reason"]).partition("; ")[0])
        if fault in FAULTS:
            of = f"trace {one['trace']}" if "trace" in one else f"application {one['application']}"
            phase = f", {one['phase']} {int(one['phase_pass'])}" if isinstance(one["phase"], str) else ""
            rows.append(_row(one, f"run {one['repeat']}, {of}{phase}", fault, words))
    return rows


def _uncounted(missing: pd.DataFrame, recordings: pd.DataFrame) -> list[dict[str, Any]]:
    """Cells that a manifest counts and that left no hole: whole rounds at the end, or a cell of every round."""
    holes = missing.loc[missing["kind"] == "loop", "recording"].value_counts()
    rows = []
    for one in recordings.to_dict("records"):
        lost = 0 if pd.isna(one["cells"]) else int(one["cells"]) - int(one["journalled"])
        if lost > holes.get(one["recording"], 0):
            words = f"the manifest counts {int(one['cells'])} cells, the journal has {int(one['journalled'])}"
            rows.append(_row(one, "journal", MISSING_ROUND, words))
    return rows
