"""The figures of a trace by name, and how they are drawn from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import selection, style
from drivelab.figures import trace_common as common

TRACE_FIGURES: Mapping[str, tuple[str, ...]] = {
    "trace_footprint": ("trace_over_time",),
    "trace_sizes": ("trace_sizes",),
    "trace_streams": ("trace_streams", "trace_streams_over_time", "trace_over_time"),
    "trace_interarrival": ("trace_interarrival", "trace_overview"),
    "trace_depth": ("trace_over_time", "trace_overview"),
    "trace_heat": ("trace_heat", "trace_over_time"),
    "trace_latency": ("trace_latency",),
}
"""Tables that each takes in its order; its function and the module of that have its name."""


def tables_of(name: str) -> list[str]:
    """All tables that the figure `name` needs."""
    return [*TRACE_FIGURES[name], "trace_overview"]


def render(name: str, tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the figure `name` from the tables of one trace, and label it with what marks the trace.

    Raises ValueError for an unknown name, missing tables, and tables of several traces.
    """
    if name not in TRACE_FIGURES:
        raise ValueError(f"there is no figure '{name}' of a trace; there are {', '.join(TRACE_FIGURES)}")
    missing = [table for table in tables_of(name) if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    selection.require(tables["trace_overview"], ("trace", "marks", "notes"), "trace_overview")
    selection.require_one(tables["trace_overview"], "trace", "trace_overview")
    function: Callable[..., Figure] = getattr(import_module(f"{__package__}.{name}"), name)
    figure = function(*(tables[table] for table in TRACE_FIGURES[name]))
    common.label(figure, tables["trace_overview"].iloc[0])
    return figure


@style.styled
def draw(
    stems: Mapping[str, Path],
    tables: Mapping[str, pd.DataFrame],
    *,
    png: bool = True,
    made_from: Mapping[str, str] | None = None,
) -> None:
    """Draw the figures named by the keys of `stems` and save each (`style.save`, `kept`)."""
    for name, stem in stems.items():
        stem.parent.mkdir(parents=True, exist_ok=True)
        style.save(render(name, tables), stem, png=png, made_from=(made_from or {}).get(name))
