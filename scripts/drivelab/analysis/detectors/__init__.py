"""Run the detectors over recordings and make the table `findings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from drivelab.analysis.detectors.alignment import alignment
from drivelab.analysis.detectors.bathtub import bathtub
from drivelab.analysis.detectors.bimodality import bimodality
from drivelab.analysis.detectors.dips import periodic_dips
from drivelab.analysis.detectors.drift import drift
from drivelab.analysis.detectors.finding import Detector
from drivelab.analysis.detectors.knee import queue_depth_knee
from drivelab.analysis.detectors.neighbours import neighbours
from drivelab.analysis.detectors.outliers import outlier_runs
from drivelab.analysis.detectors.recording import Recording
from drivelab.analysis.detectors.recovery_times import recovery_times
from drivelab.analysis.detectors.thermal import thermal_throttling
from drivelab.tables.schemas import KEY, SCHEMAS

DETECTORS: dict[str, Detector] = {
    "thermal throttling": thermal_throttling,
    "neighbours": neighbours,
    "outlier runs": outlier_runs,
    "drift": drift,
    "periodic dips": periodic_dips,
    "bimodality": bimodality,
    "bathtub": bathtub,
    "alignment": alignment,
    "queue-depth knee": queue_depth_knee,
    "recovery": recovery_times,
}
"""Detectors of disturbances first, then those of drive characteristics; docs/detectors.md describes each."""

_BY_RECORDING = ("cells", "series", "telemetry", "latency_bins")


def findings_table(tables: Mapping[str, pd.DataFrame], detectors: Mapping[str, Detector] = DETECTORS) -> pd.DataFrame:
    """Make table `findings` of any recordings.

    `tables` has `cells`, and optionally `series`, `telemetry` and `latency_bins`.
    Each finding is a row. A detector that finds nothing has one row that says so; a detector without data has none.
    Unsound cells are excluded.
    """
    columns = SCHEMAS["findings"].names
    groups = {
        name: dict(tuple(tables[name].groupby("recording", sort=False))) for name in _BY_RECORDING if name in tables
    }
    rows = []
    for recording, cells in groups["cells"].items():
        parts = {name: by_recording.get(recording, tables[name].head(0)) for name, by_recording in groups.items()}
        key = {column: cells[column].iloc[0] for column in KEY}
        evidence = Recording.of(parts)
        if evidence.cells.empty:
            continue
        for name, detector in detectors.items():
            rows += [{**key, "detector": name, **asdict(finding)} for finding in detector(evidence)]
    return pd.DataFrame(rows, columns=columns)
