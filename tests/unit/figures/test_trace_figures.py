"""Figures of a trace on every kind of trace: they draw, say their units, marks and limits, and fit on their page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from drawn import artists, stays_on_its_page, texts
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from whole_traces import write_trace

from drivelab.figures.base import style
from drivelab.figures.base.sheets import draw_trace, render
from drivelab.figures.registry import TRACE_FIGURES
from drivelab.trace import parquet_schema
from drivelab.trace.statistics.count import count

ALL_MARKS = {
    "lost": {"overrun": 12_345, "dropped": 3},
    "malformed": 1,
    "derived": [{"step": "cut"}, {"step": "drop-idle"}],
    "format_imported": "msr",
    "source": "a-very-long-name-of-a-file-in-some-collection-of-traces-of-a-data-centre.csv.gz",
    "virtual": True,
}


def requests(rows: int, operation: str = "", *, completed: bool = True, step_ns: int = 20_000) -> pa.Table:
    """Return reads and writes, or one operation only, scattered over 64 GiB."""
    random = np.random.default_rng(5)
    queue_ns = np.cumsum(random.integers(0, 2 * step_ns + 1, rows)) if step_ns else np.zeros(rows, np.int64)
    done_ns = queue_ns + random.integers(90_000, 900_000, rows)
    empty = operation == "flush"
    columns: dict[str, Any] = {
        "queue_ns": queue_ns, "dispatch_ns": queue_ns + 5000 if completed else pa.nulls(rows, pa.int64()),
        "complete_ns": done_ns if completed else pa.nulls(rows, pa.int64()),
        "operation": pa.array([operation] * rows if operation else random.choice(["read", "write"], rows)),
        **{flag: np.zeros(rows, np.bool_) for flag in parquet_schema.FLAGS},
        "offset_bytes": np.zeros(rows, np.int64) if empty else random.integers(0, 1 << 24, rows) << 12,
        "length_bytes": np.zeros(rows, np.int64) if empty else random.integers(1, 30, rows) << 12,
        "process": pa.array([""] * rows), "pid": np.full(rows, -1), "cpu": np.full(rows, -1),
        "error": np.zeros(rows, np.int64), "dispatch_id": np.arange(rows), "pieces": np.ones(rows, np.int64),
        "requeues": np.zeros(rows, np.int64),
    }  # fmt: skip
    return pa.table(columns).cast(parquet_schema.REQUESTS)


CASES: Mapping[str, Callable[[], tuple[pa.Table, dict[str, Any]]]] = {
    "mixed": lambda: (requests(4000), {}),
    "all marks": lambda: (requests(3000), ALL_MARKS),
    "reads only": lambda: (requests(1000, "read"), {}),
    "flushes only": lambda: (requests(20, "flush"), {}),
    "no completions": lambda: (requests(1000, completed=False), {}),
    "one request": lambda: (requests(1, "write"), {}),
    "one request, no completion": lambda: (requests(1, "read", completed=False), {}),
    "one second of an import": lambda: (
        requests(50, completed=False, step_ns=0),
        {"format_imported": "tencent", "source": "x.csv", "time_resolution_ns": 10**9},
    ),
    "days": lambda: (requests(500, step_ns=10**12), {}),
}


@cache
def counted(case: str) -> dict[str, pd.DataFrame]:
    return of_trace(*CASES[case]())


def of_trace(table: pa.Table, provenance: dict[str, Any]) -> dict[str, pd.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        write_trace(table, provenance, Path(folder) / "t.parquet")
        return count(Path(folder) / "t.parquet", "the-name-of-the-trace")


@cache
def drawn(case: str, name: str) -> Figure:
    figure = render(name, counted(case))
    figure.set_dpi(style.PNG_DPI)
    FigureCanvasAgg(figure).draw()
    return figure


everything = pytest.mark.parametrize("name", TRACE_FIGURES)
everywhere = pytest.mark.parametrize("case", CASES)


UNITS = ("(ns", "(µs", "(ms", "(s", "(min", "(h", "(d", "(%", "B)", "(requests)", "/s", "Length", "Requests", "log")


@everywhere
@everything
def test_it_fits_and_says_what_it_shows(case: str, name: str) -> None:
    figure = drawn(case, name)
    shown = [axes for axes in figure.axes if axes.axison]
    labels = stays_on_its_page(figure, shown)
    header = [text.get_window_extent().padded(-1) for text in figure.texts]
    assert not any(one.overlaps(two) for number, one in enumerate(header) for two in header[number + 1 :])
    for axes in shown:
        box = axes.get_window_extent()
        assert not any(box.overlaps(other) for other in header)
        assert box.height > 25, "the axes are squeezed"
    said = [label.get_text() for label in labels]
    assert all(any(unit in text for unit in UNITS) for text in said), said
    assert min(text.get_fontsize() for text in figure.findobj(Text)) >= 9
    assert bool(shown) != bool(texts(figure, "nothing"))
    assert texts(figure, "subject")[0].startswith("the-name-of-the-trace: ")


@everything
def test_marks_are_shown(name: str) -> None:
    figure = drawn("all marks", name)
    assert texts(figure, "badge") == [
        "LOSSY trace", "INCOMPLETE trace", "DERIVED trace", "IMPORTED trace", "VIRTUAL drive",
    ]  # fmt: skip
    notes = " ".join(texts(figure, "note"))
    for said in ("12,348 events were lost", "1 malformed", "cut, drop-idle", "(msr)", "virtual drive"):
        assert said in notes
    assert not texts(drawn("mixed", name), "badge")


def test_unknown_values_are_named_not_drawn() -> None:
    for name in ("trace_depth", "trace_latency"):
        assert "no completion times" in texts(drawn("no completions", name), "nothing")[0]
    for name in ("trace_footprint", "trace_sizes", "trace_streams", "trace_heat"):
        assert "no reads or writes" in texts(drawn("flushes only", name), "nothing")[0]
    assert "multiples of 1 s" in " ".join(texts(render("trace_interarrival", counted_seconds()), "note")), (
        "the resolution of the times limits the distribution"
    )


def counted_seconds() -> dict[str, pd.DataFrame]:
    seconds = pa.array(np.arange(300) // 30 * 10**9)
    table = requests(300, completed=False).set_column(0, parquet_schema.REQUESTS.field(0), seconds)
    return of_trace(table, {"time_resolution_ns": 10**9})


def test_what_is_drawn_is_what_was_counted() -> None:
    tables = counted("mixed")
    over_time, streams = tables["trace_over_time"], tables["trace_streams"]
    (line,) = artists(drawn("mixed", "trace_depth"), "line", 1)
    assert line.get_ydata()[:-1].tolist() == over_time["queue_depth_max"].tolist()
    *_, line = artists(drawn("mixed", "trace_footprint"), "line")
    assert line.get_ydata()[-1] == pytest.approx(over_time["footprint_bytes"].iloc[-1] / 2**20)
    bars = drawn("mixed", "trace_streams").axes[0].patches
    assert [bar.get_width() for bar in bars][:9] == pytest.approx(streams["share_pct"].tolist()[:9])
    assert sum(bar.get_width() for bar in bars) == pytest.approx(100)
    heat = drawn("mixed", "trace_heat")
    for number, column in enumerate(("reads", "writes")):
        (cells,) = heat.axes[number].collections
        assert cells.get_array().sum() == tables["trace_heat"][column].sum()
    sizes = drawn("mixed", "trace_sizes")
    assert sum(bar.get_width() for bar in sizes.axes[0].patches) == pytest.approx(100)
    (line,) = artists(drawn("mixed", "trace_interarrival"), "line")
    assert line.get_ydata()[-1] == pytest.approx(100)
    (line,) = artists(drawn("mixed", "trace_latency"), "read Q2C")
    reads = tables["trace_operations"].set_index("operation").loc["read"]
    assert line.get_xdata()[-1] == pytest.approx(reads["q2c_max_us"], rel=0.02)


def test_tables_that_do_not_suit_are_refused() -> None:
    tables = counted("mixed")
    with pytest.raises(ValueError, match="no figure 'pie'"):
        render("pie", tables)
    with pytest.raises(ValueError, match="needs the table\\(s\\) trace_heat"):
        render("trace_heat", {name: table for name, table in tables.items() if name != "trace_heat"})
    two = pd.concat([tables["trace_overview"], tables["trace_overview"].assign(trace="other")])
    with pytest.raises(ValueError, match="2 values of 'trace'"):
        render("trace_sizes", tables | {"trace_overview": two})
    for name in ("trace_footprint", "trace_depth", "trace_sizes"):
        needed = TRACE_FIGURES[name].tables[0]
        with pytest.raises(ValueError, match=f"table '{needed}' has no rows"):
            render(name, tables | {needed: tables[needed].iloc[:0]})


@everything
def test_files_are_reproducible(name: str, tmp_path: Path) -> None:
    for folder in ("once", "again"):
        draw_trace([name], counted("all marks"), tmp_path / folder)
    once, again = (sorted((tmp_path / folder).iterdir()) for folder in ("once", "again"))
    assert [path.suffix for path in once] == [".png", ".svg"]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert once[1].stat().st_size < 600_000
