"""The figures by name: what each is drawn by and from. What draws is imported when it is called for.

So a plan can name figures without waiting for matplotlib, and a job's digest covers the modules of its figures alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = ("cells", "steady_state")


@dataclass(frozen=True)
class FigureKind:
    """How to draw one kind of figure."""

    module: str
    """Module of this package, and the name of the function in it that draws."""
    tables: tuple[str, ...]
    """Tables that the function takes, in its order."""
    status: str
    """Table whose columns reduced, virtual and clock say how the figure must be labelled."""
    values: str = "cells"
    """Table that says whether the values shown are tainted, if it is at hand."""
    of_window: bool = False
    """Only the rounds in the steady-state window are shown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by which it differs from other figures of this module."""

    @property
    def function(self) -> Callable[..., Figure]:
        """What draws; imports its module."""
        function: Callable[..., Figure] = getattr(import_module(f"{__package__}.{self.module}"), self.module)
        return function

    @property
    def required(self) -> tuple[str, ...]:
        """All tables that `render` needs."""
        return tuple(dict.fromkeys((*self.tables, self.status)))


FIGURES: Mapping[str, FigureKind] = {
    "convergence": FigureKind("convergence", _CELLS, "cells"),
    "convergence_reads": FigureKind("convergence", _CELLS, "cells", options={"read_share_pct": 100}),
    "convergence_max": FigureKind("convergence", _CELLS, "cells", options={"metric": "max_latency_us"}),
    "pre_writes": FigureKind("convergence", _CELLS, "cells", options={"beside_sweep": True}),
    "window": FigureKind("window", ("steady_state",), "steady_state", of_window=True),
    "measurement_2d": FigureKind("measurement_2d", _CELLS, "cells", of_window=True),
    "measurement_3d": FigureKind("measurement_3d", _CELLS, "cells", of_window=True),
    "measurement_3d_max": FigureKind(
        "measurement_3d", _CELLS, "cells", of_window=True, options={"metric": "max_latency_us"}
    ),
    "repeats": FigureKind("repeats", _CELLS, "cells"),
    "demand_variation": FigureKind("demand_variation", _CELLS, "cells"),
    "demand_intensity": FigureKind("demand_intensity", _CELLS, "cells"),
    "demand_outstanding": FigureKind("demand_outstanding", _CELLS, "cells"),
    "demand_cpu": FigureKind("demand_cpu", _CELLS, "cells"),
    "idle_recovery": FigureKind("idle_recovery", ("cells",), "cells"),
    "stimulus": FigureKind("stimulus", ("cells",), "cells"),
    "latency_by_turn": FigureKind("latency_by_turn", ("latency_bins", "cells"), "latency_bins"),
    "histogram_by_turn": FigureKind("histogram_by_turn", ("latency_bins", "cells"), "latency_bins"),
    "nines": FigureKind("nines", ("latency_bins",), "latency_bins"),
    "head_to_head": FigureKind("head_to_head", ("series", "cells"), "series"),
    "saturation_time": FigureKind("saturation_time", ("cells",), "cells"),
    "saturation_bytes": FigureKind("saturation_bytes", ("cells", "drives"), "cells"),
    "latency_distribution": FigureKind("latency_distribution", ("latency_bins",), "latency_bins"),
    "latency_histogram": FigureKind("latency_histogram", ("latency_bins",), "latency_bins"),
    "replay": FigureKind("replay", ("replays", "replay_passes"), "replays", values="replays"),
    "replay_fidelity": FigureKind(
        "replay_fidelity", ("replays", "replay_issue_errors", "replay_over_time"), "replays", values="replays"
    ),
    "replay_latency": FigureKind("replay_latency", ("replays", "replay_latency"), "replays", values="replays"),
    "replay_over_time": FigureKind("replay_over_time", ("replays", "replay_over_time"), "replays", values="replays"),
    "replay_operations": FigureKind("replay_operations", ("replays", "replay_operations"), "replays", values="replays"),
    "replay_phases": FigureKind("replay_phases", ("replays", "replay_passes"), "replays", values="replays"),
    "comparison": FigureKind("comparison", ("deltas",), "summary", values="summary"),
    "normalised": FigureKind("normalised", ("deltas",), "summary", values="summary"),
    "capacity": FigureKind("capacity", ("summary", "drives"), "summary", values="summary"),
    "sizes_of_drives": FigureKind("sizes_of_drives", _CELLS, "cells", of_window=True),
    "depth_ramp": FigureKind("depth_ramp", _CELLS, "cells"),
    "bathtub": FigureKind("bathtub", _CELLS, "cells"),
    "alignment": FigureKind("alignment", _CELLS, "cells"),
    "latency_heat": FigureKind("latency_heat", ("latency_bins", "cells"), "latency_bins"),
    "tail": FigureKind("tail", ("latency_bins",), "latency_bins"),
    "nines_of_drives": FigureKind("nines_of_drives", ("latency_bins",), "latency_bins"),
    "between_nines_of_drives": FigureKind("between_nines_of_drives", ("latency_bins",), "latency_bins"),
    "exceedance_of_drives": FigureKind("exceedance_of_drives", ("latency_bins",), "latency_bins"),
    "strip_chart": FigureKind("strip_chart", ("series", "cells"), "series"),
    "telemetry_strip": FigureKind("telemetry_strip", ("telemetry", "series", "cells"), "cells"),
    "application_durations": FigureKind(
        "application_durations", ("application_runs",), "application_runs", values="application_runs"
    ),
}

DRAWING = [
    f"{__package__}.{name}" for name in ("sheets", "kept", *dict.fromkeys(one.module for one in FIGURES.values()))
]
"""All modules that draw, to be imported once where many figures are drawn."""
