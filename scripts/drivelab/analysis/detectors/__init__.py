"""Run the detectors over recordings and make the table `findings`.

A new detector is one module of this package with `DETECTOR`, see docs/how-to/detector.md.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module

import pandas as pd

from drivelab.analysis.detectors.detection import Detector, Recording
from drivelab.tables.schemas import KEY, SCHEMAS


def _discovered() -> dict[str, Detector]:
    """Return the detectors of all modules of this package; raises ValueError for a name that two detectors have."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    declared = [module.DETECTOR for module in modules if hasattr(module, "DETECTOR")]
    by_name = {entry.name: entry.detect for entry in sorted(declared, key=lambda entry: (entry.place, entry.name))}
    if len(by_name) < len(declared):
        raise ValueError(f"two detectors have the same name: {sorted(entry.name for entry in declared)}")
    return by_name


DETECTORS = _discovered()
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
