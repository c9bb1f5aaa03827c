"""Draws the figures of one measurement from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from drivelab.figures import style
from drivelab.figures.registry import FIGURES, render


def draw(stems: Mapping[str, Path], tables: Mapping[str, pd.DataFrame], subject: str) -> None:
    """Draw the figures named by the keys of `stems` from one measurement's `tables` and save each as SVG and PNG.

    Options that the tables decide: loops show the metric that they track, and the window of the first variable.
    """
    for name, stem in stems.items():
        style.save(render(name, _rows(name, tables), subject, **_options(name, tables)), stem)


def _options(name: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, object]:
    if name in ("measurement_2d", "measurement_3d"):
        return {"metric": tables["steady_state"]["metric"].iloc[0]}
    if name == "window":
        return {"variable": tables["steady_state"]["variable"].iloc[0]}
    return {"kind": "soak"} if name == "latency_distribution" else {}


def _rows(name: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Of the cells only the steps that the figure is about: a protocol may have a loop and a soak.

    The latency distribution is that of the last soak: the PTS takes its histogram after the drive has settled.
    """
    chosen = {table: tables[table] for table in dict.fromkeys((*FIGURES[name].required, FIGURES[name].values))}
    if "cells" in chosen:
        kind = "soak" if name.startswith(("saturation", "latency")) else "loop"
        chosen["cells"] = chosen["cells"][chosen["cells"]["kind"] == kind]
    if name == "latency_distribution":
        for table in ("latency_bins", "cells"):
            soak = chosen[table][chosen[table]["kind"] == "soak"]
            chosen[table] = soak[soak["step"] == soak["step"].max()]
    return chosen
