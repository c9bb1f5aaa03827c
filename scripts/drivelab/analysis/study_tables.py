"""Compute the tables of a study from those of its recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table, model_deltas
from drivelab.analysis.deltas.differences import differences_table
from drivelab.analysis.deltas.variation import variation_table
from drivelab.analysis.exclusions import WHOLE, counted, exclusions_table, recording_facts, strangers
from drivelab.analysis.values.scores import with_scores
from drivelab.analysis.values.summary import pooled, values_by_recording
from drivelab.collect.conditions import conditions, start_times
from drivelab.criteria.soundness import NOT_MEASURED
from drivelab.recording.folders import tables_folder
from drivelab.tables import io

COUNTED = ("cells", "steady_state", "replays", "replay_passes", "application_runs", "load_rates")
"""Tables of recordings whose rows may be excluded."""
BIN_COLUMNS = ("recording", "step", "round", "part", "latency_ns", "count")
"""Columns of the latencies of soaks that the summary needs."""


def study_tables(recordings: Sequence[Path], study: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return `exclusions`, `summary`, `variation`, `conditions`, `differences`, `deltas` and `model_deltas`.

    Each recording has its tables in the same results folder. `study` is
    `drivelab.campaign.study_facts.analysis_facts`.
    """
    folders = [tables_folder(recording) for recording in recordings]
    tables = {name: io.read([folder / f"{name}.parquet" for folder in folders], name) for name in COUNTED}
    latency_bins = [folder / "latency_bins.parquet" for folder in folders]
    soak_bins = io.read_part(latency_bins, "latency_bins", BIN_COLUMNS, ("kind", "soak"))
    foreign = strangers([Path(folder) for folder in study["others"]], study["drives"], study["measurements"])
    runs = {name: tables[name] for name in ("replays", "application_runs", "load_rates")}
    missing = [{**row, "place": WHOLE, "fault": NOT_MEASURED} for row in study["missing"]]
    exclusions = exclusions_table(tables["cells"], recording_facts(recordings), [*missing, *foreign], **runs)

    sound = {name: counted(table, exclusions) for name, table in tables.items()}
    options = {name: study[name] for name in ("rse_threshold_pct", "scores")}
    values = values_by_recording(**sound, soak_bins=soak_bins, **options)
    basis = study["basis"]
    summary = with_scores(values, study["score_sets"], basis, pooled(values))

    known = conditions(recordings, study["altered"], tables["cells"])
    differences = differences_table(counted(known, exclusions), study["pairs"], study["intended"])
    basis_is_there = any(recording.parts[-3] == basis for recording in recordings)
    compared = summary if basis_is_there else summary.head(0)  # another host still has to measure it
    terms = study["comparison"]
    deltas = deltas_table(compared, basis, **terms, differences=differences, started=start_times(recordings))
    models = model_deltas(
        compared, study["models"], basis, margin_pct=terms["margin_pct"], confidence_pct=terms["confidence_pct"]
    )
    if level := study.get("level"):
        for table in (deltas, models):
            table["remarks"] = [[*remarks, level] for remarks in table["remarks"]]
    return {
        "exclusions": exclusions, "summary": summary, "variation": variation_table(values, study["models"]),
        "conditions": known, "differences": differences, "deltas": deltas, "model_deltas": models,
    }  # fmt: skip
