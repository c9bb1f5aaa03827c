"""Draw the figures of a trace from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import TRACE_FIGURES


def tables_of(name: str) -> list[str]:
    """Return all tables that the figure `name` needs."""
    return list(TRACE_FIGURES[name].required)


def render(name: str, tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the figure `name` from the tables of one trace, labelled with the trace's marks.

    Raises ValueError for an unknown name, missing tables, and tables of several traces.
    """
    if name not in TRACE_FIGURES:
        raise ValueError(f"there is no figure '{name}' of a trace; there are {', '.join(TRACE_FIGURES)}")
    missing = [table for table in tables_of(name) if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    selection.require_one(tables["trace_overview"], "trace", "trace_overview")
    kind = TRACE_FIGURES[name]
    figure = kind.function(*(tables[table] for table in kind.tables))
    common.label(figure, tables["trace_overview"].iloc[0])
    return figure


@style.styled
def draw(
    stems: Mapping[str, Path],
    tables: Mapping[str, pd.DataFrame],
    *,
    png: bool = True,
) -> None:
    """Draw the figures named by the keys of `stems` and save each (`style.save`)."""
    for name, stem in stems.items():
        stem.parent.mkdir(parents=True, exist_ok=True)
        style.save(render(name, tables), stem, png=png)
