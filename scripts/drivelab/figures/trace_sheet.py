"""The figures of a trace by name, and how they are drawn from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import selection, style
from drivelab.figures import trace_common as common
from drivelab.figures.trace_depth import trace_depth
from drivelab.figures.trace_footprint import trace_footprint
from drivelab.figures.trace_heat import trace_heat
from drivelab.figures.trace_interarrival import trace_interarrival
from drivelab.figures.trace_latency import trace_latency
from drivelab.figures.trace_sizes import trace_sizes
from drivelab.figures.trace_streams import trace_streams

TRACE_FIGURES: Mapping[str, tuple[Callable[..., Figure], tuple[str, ...]]] = {
    "trace_footprint": (trace_footprint, ("trace_over_time",)),
    "trace_sizes": (trace_sizes, ("trace_sizes",)),
    "trace_streams": (trace_streams, ("trace_streams", "trace_streams_over_time", "trace_over_time")),
    "trace_interarrival": (trace_interarrival, ("trace_interarrival", "trace_overview")),
    "trace_depth": (trace_depth, ("trace_over_time", "trace_overview")),
    "trace_heat": (trace_heat, ("trace_heat", "trace_over_time")),
    "trace_latency": (trace_latency, ("trace_latency",)),
}
"""Function, and the tables that it takes in its order."""


def render(name: str, tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the figure `name` from the tables of one trace, and label it with what marks the trace.

    Raises ValueError for an unknown name, missing tables, and tables of several traces.
    """
    if name not in TRACE_FIGURES:
        raise ValueError(f"there is no figure '{name}' of a trace; there are {', '.join(TRACE_FIGURES)}")
    function, needed = TRACE_FIGURES[name]
    missing = [table for table in (*needed, "trace_overview") if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    selection.require(tables["trace_overview"], ("trace", "marks", "notes"), "trace_overview")
    selection.require_one(tables["trace_overview"], "trace", "trace_overview")
    figure = function(*(tables[table] for table in needed))
    common.label(figure, tables["trace_overview"].iloc[0])
    return figure


@style.styled
def draw(stems: Mapping[str, Path], tables: Mapping[str, pd.DataFrame], *, png: bool = True) -> None:
    """Draw the figures named by the keys of `stems` and save each (`style.save`)."""
    for name, stem in stems.items():
        stem.parent.mkdir(parents=True, exist_ok=True)
        style.save(render(name, tables), stem, png=png)
