"""The figures by name, for scripts that render one from tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import replay_common, selection, style
from drivelab.figures.comparison import comparison
from drivelab.figures.convergence import convergence
from drivelab.figures.demand_intensity import demand_intensity
from drivelab.figures.demand_variation import demand_variation
from drivelab.figures.head_to_head import head_to_head
from drivelab.figures.idle_recovery import idle_recovery
from drivelab.figures.latency_by_turn import latency_by_turn
from drivelab.figures.latency_distribution import latency_distribution
from drivelab.figures.measurement_2d import measurement_2d
from drivelab.figures.measurement_3d import measurement_3d
from drivelab.figures.nines import nines
from drivelab.figures.repeats import repeats
from drivelab.figures.replay import replay
from drivelab.figures.replay_fidelity import replay_fidelity
from drivelab.figures.replay_latency import replay_latency
from drivelab.figures.replay_operations import replay_operations
from drivelab.figures.replay_over_time import replay_over_time
from drivelab.figures.replay_phases import replay_phases
from drivelab.figures.saturation_bytes import saturation_bytes
from drivelab.figures.saturation_time import saturation_time
from drivelab.figures.stimulus import stimulus
from drivelab.figures.window import window


@dataclass(frozen=True)
class FigureKind:
    """How to draw one kind of figure."""

    function: Callable[..., Figure]
    tables: tuple[str, ...]
    """Tables that the function takes, in its order."""
    status: str
    """Table whose columns reduced, virtual and clock say how the figure must be labelled."""
    values: str = "cells"
    """Table that says whether the values shown are tainted, if it is at hand."""
    of_window: bool = False
    """Only the rounds in the steady-state window are shown."""

    @property
    def required(self) -> tuple[str, ...]:
        """All tables that `render` needs."""
        return tuple(dict.fromkeys((*self.tables, self.status)))


FIGURES: Mapping[str, FigureKind] = {
    "convergence": FigureKind(convergence, ("cells", "steady_state"), "cells"),
    "window": FigureKind(window, ("steady_state",), "steady_state", of_window=True),
    "measurement_2d": FigureKind(measurement_2d, ("cells", "steady_state"), "cells", of_window=True),
    "measurement_3d": FigureKind(measurement_3d, ("cells", "steady_state"), "cells", of_window=True),
    "repeats": FigureKind(repeats, ("cells", "steady_state"), "cells"),
    "demand_variation": FigureKind(demand_variation, ("cells", "steady_state"), "cells"),
    "demand_intensity": FigureKind(demand_intensity, ("cells", "steady_state"), "cells"),
    "idle_recovery": FigureKind(idle_recovery, ("cells",), "cells"),
    "stimulus": FigureKind(stimulus, ("cells",), "cells"),
    "latency_by_turn": FigureKind(latency_by_turn, ("latency_bins", "cells"), "latency_bins"),
    "nines": FigureKind(nines, ("latency_bins",), "latency_bins"),
    "head_to_head": FigureKind(head_to_head, ("series", "cells"), "series"),
    "saturation_time": FigureKind(saturation_time, ("cells",), "cells"),
    "saturation_bytes": FigureKind(saturation_bytes, ("cells", "drives"), "cells"),
    "latency_distribution": FigureKind(latency_distribution, ("latency_bins",), "latency_bins"),
    "replay": FigureKind(replay, ("replays", "replay_passes"), "replays", values="replays"),
    "replay_fidelity": FigureKind(
        replay_fidelity, ("replays", "replay_issue_errors", "replay_over_time"), "replays", values="replays"
    ),
    "replay_latency": FigureKind(replay_latency, ("replays", "replay_latency"), "replays", values="replays"),
    "replay_over_time": FigureKind(replay_over_time, ("replays", "replay_over_time"), "replays", values="replays"),
    "replay_operations": FigureKind(replay_operations, ("replays", "replay_operations"), "replays", values="replays"),
    "replay_phases": FigureKind(replay_phases, ("replays", "replay_passes"), "replays", values="replays"),
    "comparison": FigureKind(comparison, ("deltas",), "summary", values="summary"),
}


def render(name: str, tables: Mapping[str, pd.DataFrame], subject: str, **options: object) -> Figure:
    """Draw the figure `name` from `tables` and label it with `subject` and the status of its data.

    `options` go to the figure's function, for example `metric="max_latency_us"`. The tables must hold only what
    belongs to the figure: a badge is shown as soon as one of their rows calls for it.
    Raises ValueError for an unknown name, a missing table and whatever the figure refuses.
    """
    if name not in FIGURES:
        raise ValueError(f"there is no figure '{name}'; there are {', '.join(FIGURES)}")
    kind = FIGURES[name]
    missing = [table for table in kind.required if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    status = tables[kind.status]
    selection.require(status, ("reduced", "virtual", "clock"), kind.status)
    figure = kind.function(*(tables[table] for table in kind.tables), **options)
    if kind.status == "replays":
        replay_common.badges(figure, status)
    style.label(
        figure,
        reduced=bool(status["reduced"].any()),
        virtual=bool(status["virtual"].any()),
        clock="virtual" if (status["clock"] == "virtual").any() else "wall",
        subject=subject,
    )
    message = _tainted(kind, tables)
    if message:
        style.note(figure, message)
    return figure


def _tainted(kind: FigureKind, tables: Mapping[str, pd.DataFrame]) -> str | None:
    shown = tables.get(kind.values)
    if shown is None or shown.empty:
        return None
    return selection.tainted(selection.window_rows(shown, tables["steady_state"]) if kind.of_window else shown)
