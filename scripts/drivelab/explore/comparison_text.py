"""Print the values of a comparison as a table for people: workloads in words, one line for each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drivelab.analysis.deltas.doubts import numbered
from drivelab.analysis.deltas.inference import TWINS, compared
from drivelab.analysis.verdict import BETTER, IN_RECORDINGS, WORSE
from drivelab.core.terminal import print_table
from drivelab.core.units import format_percentage
from drivelab.explore.compare import Comparison
from drivelab.report.numbers import capital, is_missing, metric_name, number, scaled, unit_of
from drivelab.report.sentences import known_by_throughput, loaded, mark, workload_words


def print_values(comparison: Comparison, names: tuple[str, str], console: Console, *, every: bool) -> None:
    """Print a line for each value, and the reasons that weaken its verdict; those of all values once.

    Metrics that say the same (IOPS, throughput, mean latency) have one line unless `every`. Without intervals there is
    no column for them. Without any verdict, the delta refers to the reasons.
    """

    deltas = comparison.deltas
    colours = {**dict.fromkeys(BETTER, "green"), **dict.fromkeys(WORSE, "red")}
    several = deltas["measurement"].nunique() > 1
    unreplicated = bool((deltas["outcome"] == IN_RECORDINGS).all())
    intervals = bool(deltas["interval_low_pct"].notna().any())
    shown = Table(box=None, pad_edge=False)
    for name in (*(("test",) if several else ()), "workload"):
        shown.add_column(name)
    for name in names:
        shown.add_column(Text(name), justify="right")
    shown.add_column("unit")
    delta_heading = "delta in\nthese recordings" if unreplicated else "delta"
    for name in (delta_heading, *(("interval",) if intervals else ())):
        shown.add_column(Text(name), justify="right")
    if not unreplicated:
        shown.add_column("verdict")
    marks, reasons = numbered(list(map(str, doubts)) for doubts in deltas["doubts"])
    of_all = set.intersection(*map(set, marks))
    others = [note for note in range(1, len(reasons) + 1) if note not in of_all]
    marks = [tuple(others.index(note) + 1 for note in of_row if note not in of_all) for of_row in marks]
    place = None
    for position in range(len(deltas)) if every else _main(deltas, marks):
        row = next(deltas.iloc[[position]].itertuples())
        values = [float("nan") if is_missing(value) else value for value in (row.basis_value, row.comparison_value)]
        values, unit = scaled(values, unit_of(row.metric, row.unit))
        delta = "" if row.delta_pct != row.delta_pct else f"{format_percentage(row.delta_pct, signed=True)} %"
        outcome = Text(row.outcome, style=colours.get(row.outcome, ""))
        again, place = place == (row.measurement, row.cell_label), (row.measurement, row.cell_label)
        shown.add_row(
            *([Text("" if again else row.measurement)] if several else []),
            Text(_value_words(row, comparison.loads.get(place), again=again)),
            *("" if value != value else number(value) for value in values),
            unit,
            Text(delta + (mark(marks[position]) if unreplicated else "")),
            *([_interval(row.interval_low_pct, row.interval_high_pct)] if intervals else []),
            *([] if unreplicated else [outcome + Text(mark(marks[position]))]),
        )
    print_table(shown, console)
    for note in sorted(of_all):
        console.print(f"All values: {reasons[note - 1]}", markup=False)
    for shown_as, note in enumerate(others, start=1):
        console.print(f"[{shown_as}] {reasons[note - 1]}", markup=False)


def _main(deltas: Any, marks: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the positions of the values without those of IOPS, throughput and mean latency that say the same."""

    cells: dict[tuple[str, str], list[int]] = {}
    for position, row in enumerate(deltas.itertuples()):
        cells.setdefault((row.measurement, row.cell_label), []).append(position)
    kept = []
    for (_, label), positions in cells.items():
        metrics = {position: deltas["metric"].iloc[position] for position in positions}
        twins = [position for position in positions if compared(label, metrics[position]) == TWINS[0]]
        first = "bandwidth_mib_s" if known_by_throughput(label) else TWINS[0]
        main = next((position for position in twins if metrics[position] == first), (twins or positions)[0])
        said = (deltas["outcome"].iloc[main], marks[main])
        same = {position for position in twins if (deltas["outcome"].iloc[position], marks[position]) == said} - {main}
        kept += [main, *(position for position in positions if position != main and position not in same)]
    return kept


def _value_words(delta: Any, load: str | None, *, again: bool) -> str:
    """Name a value: its workload, and its metric unless the unit says it; only the metric if the row above has both."""

    metric = metric_name(delta.metric)
    if again:
        return f"  {metric}"
    workload = capital(workload_words(loaded(delta.cell_label, load))).replace("\u00a0", " ")
    return workload if delta.metric in ("iops", "bandwidth_mib_s") else f"{workload}: {metric}"


def _interval(low_pct: float, high_pct: float) -> str:
    low, high = format_percentage(low_pct, signed=True), format_percentage(high_pct, signed=True)
    return "" if low_pct != low_pct else f"{low} to {high} %"
