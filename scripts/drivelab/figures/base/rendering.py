"""Draw one figure from tables, labelled with its subject and the status of its data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.registry import FIGURES, FigureKind


def render(name: str, tables: Mapping[str, pd.DataFrame], subject: str, **options: object) -> Figure:
    """Draw the figure `name` from `tables` and label it with `subject` and the status of its data.

    `options` are arguments of the figure's function, for example `metric="max_latency_us"`. The tables must have only
    rows of the figure, as a single row can require a badge. Raises ValueError for an unknown name, a missing table and
    tables that the figure refuses.
    """
    if name not in FIGURES:
        raise ValueError(f"there is no figure '{name}'; there are {', '.join(FIGURES)}")
    kind = FIGURES[name]
    missing = [table for table in kind.required if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    status = tables[kind.status_table]
    selection.require(status, kind.status_table)
    figure = kind.function(*(tables[table] for table in kind.tables), **{**kind.options, **options})
    if kind.status_table == "replays":
        import_module("drivelab.figures.kinds.replay.replay_common").badges(
            figure, status
        )  # only figures of replays import it
    style.label_by(figure, status, subject)
    if messages := _doubts(kind, tables):
        style.note(figure, "; ".join(messages))
    return figure


def _doubts(kind: FigureKind, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what disturbed the shown values, and why the host may limit them."""
    shown = tables.get(kind.values)
    if shown is None or shown.empty:
        return []
    rows = selection.window_rows(shown, tables["steady_state"]) if kind.of_window else shown
    return [message for message in (selection.tainted(rows), selection.host_limited(rows)) if message is not None]
