"""Results by block size and R/W mix, as on the report pages of the PTS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.number_cells import summary_cell
from drivelab.report.numbers import capital, heading, metric_order
from drivelab.report.taint import taint_mark, taint_reasons, tainted
from drivelab.report.view import Cell, Column, Table
from drivelab.report.window_cells import in_windows
from drivelab.units import parse_size

_LABEL = re.compile(r"(RND|SEQ) (\d+(?:B|KiB|MiB|GiB)) (\d+)/(\d+)")


def matrices(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield tables of block size by R/W mix for the tracked metrics, or for all if none is tracked.

    A tracked latency also gets IOPS and the maximum of the cells in the window (PTS latency test).
    """
    tracked = {metric for _, metric in inputs.tracked(key[1])}
    summary = inputs.of_key("summary", key)
    if "mean_latency_us" in tracked:
        tracked.add("iops")
        summary = [*summary, *_maxima(inputs, key)]
        tracked.add("max_latency_us")
    groups: dict[tuple[str, str, str], dict[tuple[int, str], Row]] = {}
    for row in summary:
        match = _LABEL.fullmatch(row["cell_label"])
        if match and (row["metric"] in tracked or not tracked):
            group = groups.setdefault((row["metric"], match[1], row["statistic"]), {})
            group[parse_size(match[2]), f"{match[3]}/{match[4]}"] = row
    for (metric, pattern, statistic), cells in sorted(groups.items(), key=lambda item: metric_order(item[0][0])):
        if len(cells) < 2:
            continue
        sizes = sorted({block for block, _ in cells})
        mixes = sorted({mix for _, mix in cells}, key=lambda mix: int(mix.partition("/")[0]))
        labels = {block: row["cell_label"].split()[1] for (block, _), row in cells.items()}
        first = next(iter(cells.values()))
        subject = capital(heading(metric, first["unit"]))
        access = "random" if pattern == "RND" else "sequential"
        yield Table(
            id=f"{inputs.anchors[key]}-{metric.replace('_', '-')}-{pattern.lower()}",
            caption=f"{subject}: block size by R/W mix %, {access} access ({statistic})",
            columns=(Column("Block size", numeric=False), *map(Column, mixes)),
            rows=tuple(
                (Cell(labels[block]), *(_matrix_cell(cells.get((block, mix))) for mix in mixes)) for block in sizes
            ),
            note=_note(cells.values()),
            sources=inputs.sources(name for row in cells.values() for name in row["recordings"]),
        )


def _note(rows: Iterable[Row]) -> str:
    tainted_rows = [row for row in rows if taint_mark(row)]
    return f"Tainted: {taint_reasons(tainted_rows)}." if tainted_rows else ""


def _matrix_cell(row: Row | None) -> Cell:
    return summary_cell(row, taint_mark(row) if row else "")


def _maxima(inputs: Inputs, key: Key) -> Iterator[Row]:
    """Yield the maximum latency of each cell in the window, as rows like those of the summary."""
    cells = in_windows(inputs, key).dropna(subset="max_latency_us")
    for label, rows in cells.groupby("cell_label", sort=False):
        yield {
            "cell_label": label,
            "metric": "max_latency_us",
            "unit": "us",
            "statistic": "maximum in the window",
            "value": rows["max_latency_us"].max(),
            "taint_reason": taint_reasons(tainted(rows_of(rows))) or None,
            "recordings": list(rows["recording"].unique()),
            "evidence": list(rows["recording"] + "/" + rows["directory"]) if "directory" in rows else [],
        }
