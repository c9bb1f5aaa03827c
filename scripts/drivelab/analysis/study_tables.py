"""Compute the tables of a study from those of its recordings: what counts, the summary, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.differences import differences_table
from drivelab.analysis.deltas.models import model_deltas
from drivelab.analysis.deltas.variation import variation_table
from drivelab.analysis.exclusions import counted, exclusions_table
from drivelab.analysis.recording_facts import recording_facts, strangers
from drivelab.analysis.values.scores import with_scores
from drivelab.analysis.values.summary import pooled, values_by_recording
from drivelab.collect.conditions import conditions, start_times

COUNTED = ("cells", "steady_state", "replays", "replay_passes", "application_runs", "load_rates")
"""Tables of recordings whose rows may be excluded."""
BIN_COLUMNS = ("recording", "step", "round", "part", "latency_ns", "count")
"""Columns of the latencies of soaks that the summary needs."""


def study_tables(
    recordings: Sequence[Path], tables: Mapping[str, pd.DataFrame], soak_bins: pd.DataFrame, study: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Return `exclusions`, `summary`, `variation`, `conditions`, `differences`, `deltas` and `model_deltas`.

    `tables` are those in COUNTED, `soak_bins` BIN_COLUMNS of table `latency_bins`, and `study` is
    `drivelab.workflow.layout.Layout.analysis_facts`.
    """
    foreign = strangers([Path(folder) for folder in study["others"]], study["drives"], study["measurements"])
    runs = {name: tables[name] for name in ("replays", "application_runs", "load_rates")}
    exclusions = exclusions_table(tables["cells"], recording_facts(recordings), foreign, **runs)

    sound = {name: counted(table, exclusions) for name, table in tables.items()}
    options = {name: study[name] for name in ("rse_threshold_pct", "scores")}
    values = values_by_recording(**sound, soak_bins=soak_bins, **options)
    basis = study["basis"]
    summary = with_scores(values, study["score_sets"], basis, pooled(values))

    known = conditions(recordings, study["altered"], tables["cells"])
    differences = differences_table(counted(known, exclusions), study["pairs"], study["intended"])
    compared = summary if study["basis_is_there"] else summary.head(0)  # another host still has to measure it
    terms = study["comparison"]
    deltas = deltas_table(compared, basis, **terms, differences=differences, started=start_times(recordings))
    models = model_deltas(
        compared, study["models"], basis, margin_pct=terms["margin_pct"], confidence_pct=terms["confidence_pct"]
    )
    return {
        "exclusions": exclusions, "summary": summary, "variation": variation_table(values, study["models"]),
        "conditions": known, "differences": differences, "deltas": deltas, "model_deltas": models,
    }  # fmt: skip
