"""Make the table `exclusions`: what is excluded from the results, and why; and the facts that decide it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.collect.inventory import UNKNOWN
from drivelab.collect.soundness_of_cells import name_of
from drivelab.core.errors import UserError
from drivelab.criteria.soundness import (
    ALTERED,
    DUPLICATED,
    FAULTS,
    FOREIGN,
    MISSING_ROUND,
    MISSING_SLICE,
    MIXED_VERSIONS,
    missing_cells,
    split,
)
from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST, UNFINISHED, VERSIONS, read_journal
from drivelab.tables.schemas import SCHEMAS

WHOLE = "recording"
"""The `place` of a row that excludes a whole recording."""
FACT_COLUMNS = ("recording", "drive", "measurement", "finished", *VERSIONS, "digests", "cells", "journalled")
_OF_HOST = ("fio", "kernel")
"""VERSIONS from host.json; the others come from identity.json."""
_MISSING = {
    "loop": f"{MISSING_ROUND}: the cell is not in the journal",
    "soak": f"{MISSING_SLICE}: the slice has no evidence",
}
_PLACE = ["recording", "step", "kind", "cell"]

Row = Mapping[str, Any]


def exclusions_table(
    cells: pd.DataFrame,
    recordings: pd.DataFrame,
    strangers: Iterable[Row] = (),
    *,
    replays: pd.DataFrame | None = None,
    application_runs: pd.DataFrame | None = None,
    load_rates: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Make table `exclusions` of a study.

    `cells` is table `cells`, unsound rows included.
    `recordings` has a row for each recording in the study's order, from `recording_facts`: recording,
    drive, measurement, finished (ISO 8601), the VERSIONS, `digests` of its evidence, `cells` (the count in its
    manifest, null without one) and `journalled` (the count in its journal). `strangers` are rows of the table for
    recordings that are missing, and for folders that do not belong to the study. `replays`, `application_runs` and
    `load_rates` are the tables of these names.

    Excluded as a whole are altered recordings, recordings with the evidence of an earlier one, and recordings whose
    versions differ from those of the latest one that they would be pooled with.
    """
    altered: dict[str, dict[str, Any]] = {}
    for table in (cells, replays, application_runs, load_rates):
        if table is not None and len(table):
            reasons = table["unsound" if "unsound" in table else "taint_reason"].astype(object)
            firsts = table[reasons.str.startswith(f"{ALTERED}: ", na=False)].drop_duplicates("recording")
            for place, row in firsts.iterrows():
                altered[row["recording"]] = _row(row, WHOLE, *split(reasons[place].partition("; ")[0]))
    cells, replays, application_runs, recordings = (
        table if table is None else table[~table["recording"].isin(altered)]
        for table in (cells, replays, application_runs, recordings)
    )
    rows = [*strangers, *altered.values()]
    duplicates = list(_duplicates(recordings))
    known = {row["recording"] for row in duplicates}
    rows += duplicates + _other_versions(recordings[~recordings["recording"].isin(known)])
    missing = missing_cells(cells)
    rows += [*_cell_rows(cells, missing), *_run_rows(replays), *_run_rows(application_runs)]
    rows += _uncounted(missing, recordings)
    return pd.DataFrame(rows, columns=SCHEMAS["exclusions"].names)


def left_out(exclusions: pd.DataFrame) -> set[str]:
    """Return the names of the recordings that are excluded as a whole."""
    return set(exclusions.loc[exclusions["place"] == WHOLE, "recording"])


def counted(table: pd.DataFrame, exclusions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table whose recordings are not excluded as a whole."""
    return table[~table["recording"].isin(left_out(exclusions))].reset_index(drop=True)


def _row(recording: Any, place: str, fault: str, words: str) -> dict[str, Any]:
    key = {name: str(recording[name]) for name in ("recording", "drive", "measurement")}
    return {**key, "place": place, "fault": fault, "words": words}


def _duplicates(recordings: pd.DataFrame) -> Iterable[dict[str, Any]]:
    firsts: dict[str, str] = {}
    for recording in recordings.to_dict("records"):
        first = next((firsts[digest] for digest in recording["digests"] if digest in firsts), None)
        firsts.update(dict.fromkeys(recording["digests"], first or recording["recording"]))
        if first is not None:
            yield _row(recording, WHOLE, DUPLICATED, f"it has the same evidence as {first}, which counts")


def _other_versions(recordings: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for _, pooled in recordings.groupby(["drive", "measurement"], sort=False):
        latest = pooled.sort_values("finished", kind="stable").iloc[-1]
        for recording in pooled.to_dict("records"):
            differing = [(name, title) for name, title in VERSIONS.items() if recording[name] != latest[name]]
            versions = [f"{title} {recording[name]} instead of {latest[name]}" for name, title in differing]
            if versions:
                words = f"made with {', '.join(versions)}; not pooled with the latest, {latest['recording']}"
                rows.append(_row(recording, WHOLE, MIXED_VERSIONS, words))
    return rows


def _cell_rows(cells: pd.DataFrame, missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for unsound and missing cells, by recording and time."""
    bad = cells[cells["unsound"].notna()]
    if bad.empty and missing.empty:
        return []
    concerned = cells[cells["recording"].isin({*bad["recording"], *missing["recording"]})]
    named = concerned.drop_duplicates(_PLACE)[[*_PLACE, "drive", "measurement", "cell_label"]]
    excluded = pd.concat([bad[[*_PLACE, "round", "unsound"]], missing.assign(unsound=missing["kind"].map(_MISSING))])
    excluded = excluded.merge(named, on=_PLACE)
    order = {name: number for number, name in enumerate(concerned["recording"].unique())}
    excluded = excluded.assign(order=excluded["recording"].map(order))
    excluded = excluded.sort_values(["order", "step", "round", "cell"], kind="stable")
    return [
        _row(row, f"{'round' if row['kind'] == 'loop' else 'slice'} {row['round']}, {row['cell_label']}",
             *split(row["unsound"]))
        for row in excluded.to_dict("records")
    ]  # fmt: skip


def _run_rows(runs: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return rows for replays or application runs whose taint is one of FAULTS."""
    if runs is None or runs.empty:
        return []
    rows = []
    for run in runs[runs["taint_reason"].notna()].to_dict("records"):
        fault, words = split(str(run["taint_reason"]).partition("; ")[0])
        if fault in FAULTS:
            subject = f"trace {run['trace']}" if "trace" in run else f"application {run['application']}"
            phase = f", {run['phase']} {int(run['phase_pass'])}" if isinstance(run["phase"], str) else ""
            rows.append(_row(run, f"run {run['repeat']}, {subject}{phase}", fault, words))
    return rows


def _uncounted(missing: pd.DataFrame, recordings: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for lost cells that leave no hole. These are whole rounds at the end, or one cell of every round."""
    holes = missing.loc[missing["kind"] == "loop", "recording"].value_counts()
    rows = []
    for recording in recordings.to_dict("records"):
        if pd.isna(recording["cells"]):
            continue
        expected, journalled = int(recording["cells"]), int(recording["journalled"])
        if expected - journalled > holes.get(recording["recording"], 0):
            words = f"the manifest counts {expected} cells, the journal has {journalled}"
            rows.append(_row(recording, "journal", MISSING_ROUND, words))
    return rows


def recording_facts(recordings: Sequence[Path]) -> pd.DataFrame:
    """Return a row with FACT_COLUMNS for each recording, for `exclusions_table`."""
    return pd.DataFrame(map(_facts, recordings), columns=list(FACT_COLUMNS))


def strangers(
    folders: Sequence[Path], drives: Collection[str], measurements: Collection[str]
) -> Iterator[dict[str, str]]:
    """Yield rows of the table `exclusions` for folders below recordings/ that belong to no plan of the study.

    `drives` and `measurements` are those of the study. Recordings of them by an earlier plan are not strangers, and
    neither are unfinished measurements.
    """
    for folder in folders:
        if UNFINISHED.search(folder.name) or not (folder / "plan.json").exists():
            continue
        name = name_of(folder)
        drive, measurement = folder.parts[-3:-1]
        row = {"recording": name, "drive": drive, "measurement": measurement, "place": WHOLE, "fault": FOREIGN}
        try:
            plan = Plan.read(folder / "plan.json")
        except UserError as error:
            yield {**row, "words": str(error)}
            continue
        if plan.recording != name:
            yield {**row, "words": f"it is the recording {plan.recording} under another name"}
        elif plan.drive not in drives or plan.measurement not in measurements:
            kind = "drive" if plan.drive not in drives else "measurement"
            stranger = plan.drive if kind == "drive" else plan.measurement
            yield {**row, "words": f"its {kind} '{stranger}' is not in the study"}


def _facts(recording: Path) -> dict[str, Any]:
    plan, journal = Plan.read(recording / "plan.json"), list(read_journal(recording))
    if not journal:
        raise UserError(
            f"{recording}: its journal is empty; restore it from a copy, or delete the folder to measure again"
        )
    host, identity = _read(recording / "host.json"), _read(recording / "identity.json")
    versions = {name: (host if name in _OF_HOST else identity).get(name) for name in VERSIONS}
    return {
        "recording": plan.recording,
        "drive": plan.drive,
        "measurement": plan.measurement,
        "finished": journal[-1]["at"],
        **{name: UNKNOWN if version in (None, "") else str(version) for name, version in versions.items()},
        "digests": tuple(_digests(recording, journal, plan)),
        "cells": _read(recording / MANIFEST).get("cells"),
        "journalled": sum(line["event"] == "cell" for line in journal),
    }


def _digests(recording: Path, journal: list[dict[str, Any]], plan: Plan) -> Iterator[str]:
    """Yield digests that are unique to a recording: of its event times and, in real time, of fio's output.

    On the virtual clock nothing varies, so fio's output may repeat.
    """
    yield hashlib.sha256(json.dumps([(line["event"], line["at"]) for line in journal]).encode()).hexdigest()
    outputs = [recording / line["directory"] / "fio.json" for line in journal if line["event"] in ("cell", "soak")]
    if outputs and plan.clock == "wall":
        digest = hashlib.sha256()
        for path in outputs:
            digest.update(path.read_bytes() if path.exists() else b"")
        yield digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
