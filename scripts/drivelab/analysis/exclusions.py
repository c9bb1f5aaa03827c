"""The table `exclusions`: all that is left out of every result, by name and with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.repeats import FEWEST
from drivelab.analysis.soundness import (
    ALTERED,
    DUPLICATED,
    FAULTS,
    MISSING_ROUND,
    MISSING_SLICE,
    MIXED_VERSIONS,
    WAITING,
    missing_cells,
    split,
)
from drivelab.tables.schemas import SCHEMAS
from drivelab.words import some

WHOLE = "recording"
"""Place of what leaves out a recording as a whole."""
VERSIONS = {
    "fio": "fio", "kernel": "kernel", "firmware": "firmware", "capacity_bytes": "capacity in bytes",
    "logical_block_bytes": "logical block in bytes", "over_provisioning_pct": "over-provisioning in %",
}  # fmt: skip
"""What must be the same of recordings whose values are pooled: columns of their facts, and how they are called."""
_NAMED = 3
"""Of a recording that waits, so many of its cells are named."""
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
    study's; `replays` and `application_runs` are the tables of these names. A recording that was altered is left out,
    one with the evidence of an earlier one, and of several that would be pooled for one value, those whose versions
    are not the latest's. The last of an even number of recordings that have a value is in no median: it waits for
    another, its cells are in all other tables.
    """
    taken = recordings[["recording", "drive", "measurement"]]
    altered = [row for table in (cells, replays, application_runs) for row in _altered(table)]
    gone = {row["recording"] for row in altered}
    cells, replays, application_runs, recordings = (
        table if table is None else table[~table["recording"].isin(gone)]
        for table in (cells, replays, application_runs, recordings)
    )
    rows = [*strangers, *{row["recording"]: row for row in altered}.values()]
    duplicates = list(_duplicates(recordings))
    known = {row["recording"] for row in duplicates}
    rows += duplicates + _of_other_versions(recordings[~recordings["recording"].isin(known)])
    missing = missing_cells(cells)
    rows += [*_of_cells(cells, missing), *_of_runs(replays), *_of_runs(application_runs)]
    rows += _uncounted(missing, recordings)
    gone |= {row["recording"] for row in rows if row["place"] == WHOLE}
    rows += _waiting(_valued(cells, replays, application_runs), taken, gone)
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


def _altered(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """A row for each recording of a table whose rows are all left out because it was altered."""
    if table is None or table.empty:
        return []
    reasons = table["unsound" if "unsound" in table.columns else "taint_reason"]
    of = table[reasons.astype(object).str.startswith(f"{ALTERED}: ", na=False)].drop_duplicates("recording")
    return [_row(one, WHOLE, *split(reasons[place].partition("; ")[0])) for place, one in of.iterrows()]


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
            differing = [(name, words) for name, words in VERSIONS.items() if one[name] != latest[name]]
            other = [f"{words} {one[name]} and not {latest[name]}" for name, words in differing]
            if other:
                words = f"made with {', '.join(other)} as the latest, {latest['recording']}: not pooled with it"
                rows.append(_row(one, WHOLE, MIXED_VERSIONS, words))
    return rows


def _valued(
    cells: pd.DataFrame, replays: pd.DataFrame | None, application_runs: pd.DataFrame | None
) -> Mapping[str, Mapping[str, int]]:
    """By what is measured, its name: run by recording, of those that have anything of it that counts."""
    found: dict[str, dict[str, int]] = {}
    for table, name in ((cells, "cell_label"), (replays, "trace"), (application_runs, "application")):
        if table is not None and len(table):
            counts = table["unsound"].isna() if name == "cell_label" else table["counted"].astype(bool)
            of = table.loc[counts, ["recording", "run", name]].drop_duplicates()
            for recording, run, label in of.itertuples(index=False, name=None):
                found.setdefault(str(label), {})[recording] = run
    return found


def _waiting(
    valued: Mapping[str, Mapping[str, int]], recordings: pd.DataFrame, gone: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A row for each recording that no median has, because it is the last of an even number; `gone` count nowhere."""
    for _, pooled in recordings.groupby(["drive", "measurement"], sort=False):
        waiting: dict[tuple[str, ...], list[str]] = {}
        names = [one for one in pooled["recording"] if one not in gone] if len(pooled) > 1 else []
        for label, runs in valued.items() if len(names) > 1 else ():
            sound = sorted((one for one in names if one in runs), key=runs.__getitem__)
            if sound and len(sound) % 2 == 0:
                waiting.setdefault(tuple(sound), []).append(label)
        of_name = {one["recording"]: one for one in pooled.to_dict("records")}
        for (*others, last), labels in waiting.items():
            place = some(labels, _NAMED)
            stands = f"of {others[0]} alone" if len(others) < FEWEST else f"the median of the {len(others)} before it"
            words = (
                f"{len(others) + 1} sound recordings of {len(pooled)}: a median needs an odd number of at least three; "
                f"this one waits for another, the value is {stands}"
            )
            yield _row(of_name[last], f"values of {place}", WAITING, words)


def _of_cells(cells: pd.DataFrame, missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Unsound cells and those that are not there, in the order of the recordings and of time."""
    bad = cells[cells["unsound"].notna()]
    if bad.empty and missing.empty:
        return []
    concerned = cells[cells["recording"].isin({*bad["recording"], *missing["recording"]})]
    first = concerned.drop_duplicates(["recording", "step", "kind", "cell"])
    labels = {(r.recording, r.step, r.kind, r.cell): r for r in first.itertuples()}
    found = [
        (one, *split(one.unsound)) for one in bad.itertuples()
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
