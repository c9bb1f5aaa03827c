"""The report of a fleet, whose drives have separate reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis import limits
from drivelab.analysis.fleet_parts import measured
from drivelab.analysis.fleet_statistics import VALUE
from drivelab.criteria.taint import worst
from drivelab.report.document import Report
from drivelab.report.fleet_sentences import count, lead, some
from drivelab.report.fleet_view import INTERVAL, Fleet
from drivelab.report.html import render
from drivelab.report.numbers import moment
from drivelab.report.view import Banner
from drivelab.tables import io

_OF_DEVIATIONS = ("drive", *VALUE, "is_key", "deviation_pct", "modified_z", "place", "outlier")
"""Columns of the table `fleet_deviations` that the verdict needs."""


def write_report(
    tables: Mapping[str, Path], outcomes: Sequence[Mapping[str, Any]], study: Mapping[str, Any], output: Path
) -> None:
    """Write the report of a fleet.

    `tables` has the four fleet tables, `model_deltas`, and the folder `deltas`; `study` is `Fleet.report_facts`.
    """
    frames = {name: io.read(path, name) for name, path in tables.items() if name != "deltas"}
    parts = measured(outcomes).values()
    columns = ("drive", *VALUE, *INTERVAL)
    intervals = io.read_columns([part / "tables/summary.parquet" for part in parts], "summary", columns)
    traces = io.read([part / "tables/traces.parquet" for part in parts], "traces")
    lossy = sorted(set(traces.loc[traces["lossy"], "trace"]))
    output.parent.mkdir(parents=True, exist_ok=True)
    report = build(frames, _verdicts(tables["deltas"]), study, intervals, lossy)
    output.write_text(render(report), encoding="utf-8")


def verdict(tables: Path, basis: str, margin_pct: float) -> list[str]:
    """Return the sentences of `lead` from the folder of a fleet's tables, for the terminal."""
    names = ("fleet_drives", "fleet_spread", "fleet_hosts")
    drives, spread, hosts = (io.read(tables / f"{name}.parquet", name) for name in names)
    deviations = io.read_columns([tables / "fleet_deviations.parquet"], "fleet_deviations", _OF_DEVIATIONS)
    verdicts = _verdicts(tables / "deltas"), io.read(tables / "model_deltas.parquet", "model_deltas")
    return list(lead(drives, spread, deviations, hosts, *verdicts, basis, margin_pct))


def _verdicts(folder: Path) -> pd.DataFrame:
    return io.read_columns(sorted(folder.glob("*/deltas.parquet")), "deltas", ("comparison", "verdict"))


def build(
    frames: Mapping[str, pd.DataFrame], deltas: pd.DataFrame, study: Mapping[str, Any], intervals: pd.DataFrame,
    lossy: Sequence[str] = (),
) -> Report:  # fmt: skip
    """Build the report; `intervals` are rows of `summary`, and `lossy` names traces with missing events."""
    drives, spread, deviations, hosts = (frames[f"fleet_{n}"] for n in ("drives", "spread", "deviations", "hosts"))
    fleet = Fleet(
        drives, spread, deviations.merge(intervals, how="left", on=["drive", *VALUE]), hosts, deltas,
        frames["model_deltas"], study["basis"], float(study["comparison"]["margin_pct"]),
        # DRIVE@PLATFORM is part of the report of DRIVE
        {drive: f"../drives/{drive.partition('@')[0]}/report/index.html" for drive in drives["drive"]},
    )  # fmt: skip
    return Report(
        title=study["title"],
        study=study["name"],
        report_date=moment(datetime.now(UTC)),
        measured="drive by drive",
        sentence=fleet.sentence(),
        chart=fleet.chart,
        glance=fleet.glance(),
        lead=fleet.lead(),
        banners=tuple(banners(drives, deviations, study, lossy)),
        many_drives=fleet.section(own_reports=True),
    )


def banners(
    drives: pd.DataFrame, deviations: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str]
) -> Iterator[Banner]:
    """Yield the limitations of the numbers, most severe first."""
    failed = drives[drives["state"] != "measured"]
    if len(failed):
        yield Banner("excluded", "drives missing", "Drives are missing", "No number of this report includes them.",
                     reasons=tuple(f"{row['drive']}: {row['reason']}" for _, row in failed.iterrows()))  # fmt: skip
    if study["elsewhere"]:
        yield Banner("elsewhere", "drives on other hosts", "Drives on other hosts are missing",
                     f"Not yet measured there: {some(study['elsewhere'])}.")  # fmt: skip
    for column, banner_id, label, meaning in (
        ("not_steady", "not-steady", limits.NOT_STEADY, "Medians exclude values without steady state."),
        ("tainted", limits.TAINTED, "tainted", "Something disturbed the drive or its host during these measurements."),
    ):
        affected = drives[drives[column] > 0]
        if len(affected):
            counts = [f"{row['drive']} ({count(row[column], 'value')})" for _, row in affected.iterrows()]
            verb = "has" if len(affected) == 1 else "have"
            title = f"{count(len(affected), 'drive')} {verb} values that are {label}"
            reasons = tuple(_disturbances(deviations, affected["drive"])) if column == "tainted" else ()
            yield Banner(banner_id, label, title, f"{meaning} Drives: {some(counts)}.", reasons=reasons)
    if lossy:
        yield Banner("lossy", limits.LOSSY, "A lossy trace was replayed", f"Events are missing from {some(lossy)}.")
    if study["altered"]:
        yield Banner("reduced", limits.REDUCED, "Reduced protocols",
                     "The measured protocol is not the full-length one.", reasons=tuple(study["altered"]))  # fmt: skip
    if deviations["virtual"].any():
        on_clock = " on the virtual clock" if (deviations["clock"] == "virtual").any() else ""
        why = f": {study['clock_reason']}" if study["clock_reason"] else ""
        yield Banner("virtual", limits.VIRTUAL, "Virtual drives", f"The drives are models{on_clock}, not SSDs{why}.")


def _disturbances(deviations: pd.DataFrame, drives: pd.Series) -> Iterator[str]:
    """Yield each drive's worst taints: `throttled` is the drive, `foreign` its users, others the host."""
    taints = deviations[deviations["taint_reason"].notna()].groupby("drive")["taint_reason"]
    reasons = {drive: "; ".join(worst(texts)) for drive, texts in taints}
    yield from (f"{drive}: {reasons[drive]}" for drive in drives if drive in reasons)
