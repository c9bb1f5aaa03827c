"""Use pandas, pyarrow and matplotlib once in the process whose forks run the scripts.

The first use imports modules, compiles patterns, searches for fonts, measures texts and adapts Python's bytecode. That
takes as long as many of the scripts, and each fork takes it over.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import quantity
from drivelab.tables import io

_VALUES = [float(number * number) for number in range(1, 20)]
_FIGURES = 3
"""Python adapts the bytecode of a function after eight calls (PEP 659); parts of a figure are drawn three times."""


def warm_up() -> None:
    """Write and read a table and draw figures, and keep none of them."""
    _table()
    for _ in range(_FIGURES):
        _figure()


def _table() -> None:
    row = {"trace": "t", "operation": "read", "length_bytes": 4096, "requests": 1, "length_step_bytes": 1}
    with TemporaryDirectory(prefix="drivelab-") as folder:
        path = Path(folder) / "table.parquet"
        io.write(pd.DataFrame([row, row]), path, "trace_sizes")
        io.read(path, "trace_sizes").groupby(["operation", "length_bytes"], sort=False)["requests"].sum().unstack()


@style.styled
def _figure() -> None:
    figure = style.new_figure("Random write 4 KiB")
    lines, bars, picture = figure.subplots(3, 1)
    scale = quantity("iops", max(_VALUES))
    for name in ("op7", "op28"):
        lines.plot(range(len(_VALUES)), _VALUES, marker="o", label=name)
    ax.scale_y(lines, _VALUES, scale, log=True)
    ax.round_axis(lines, 1, len(_VALUES))
    bars.bar(range(len(_VALUES)), _VALUES)
    bars.axhline(1.0, linewidth=1)
    ax.scale_y(bars, _VALUES, scale)
    picture.imshow([[0.0, 1.0]], aspect="auto")
    ax.legend(figure, lines)
    style.note(figure, "0123456789")
    style.label(figure, reduced=True, virtual=True, clock="virtual", subject="op7, pts-iops")
    style.svg(figure)
