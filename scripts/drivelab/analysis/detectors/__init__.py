"""What stands out in a recording: detectors with thresholds that have a reason, and the table `findings`."""

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
"""What disturbs a measurement first, then what a drive is like; docs/detectors.md tells of each."""

_BY_RECORDING = ("cells", "series", "telemetry", "latency_bins")


def findings_table(tables: Mapping[str, pd.DataFrame], detectors: Mapping[str, Detector] = DETECTORS) -> pd.DataFrame:
    """Table `findings` from `cells` and what there is of `series`, `telemetry`, `latency_bins`, of any recordings.

    A row for each finding; a detector that looked and found nothing has one that says so, and one that has nothing to
    look at has none. Cells that are not sound count nowhere.
    """
    columns = SCHEMAS["findings"].names
    groups = {
        name: dict(tuple(tables[name].groupby("recording", sort=False))) for name in _BY_RECORDING if name in tables
    }
    rows = []
    for recording, cells in groups["cells"].items():
        found = {name: one.get(recording, tables[name].head(0)) for name, one in groups.items()}
        key = {column: cells[column].iloc[0] for column in KEY}
        evidence = Recording.of(found)
        if evidence.cells.empty:
            continue
        for name, detector in detectors.items():
            rows += [{**key, "detector": name, **asdict(one)} for one in detector(evidence)]
    return pd.DataFrame(rows, columns=columns)
