"""Who is faster at what, by how much, how sure."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, heading, is_missing, metric_name, number, percent, quantity, unit_of
from drivelab.report.view import Cell, Column, Headline, Table

_SPEED_FIRST = ("iops", "bandwidth_mib_s", "mean_latency_us", "duration_s")
_MOST_HEADLINES = 5
_TIME_FIRST = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""For a replay with the application's own timing: the trace dictates the IOPS, the drive only how long each takes."""


def headline_deltas(inputs: Inputs) -> list[Row]:
    """The deltas that matter: of tracked variables, or else of the one metric that says most about a cell."""
    replayed = {row["measurement"] for row in inputs.tables["replays"]}
    found: list[Row] = []
    for measurement in inputs.measurements:
        deltas = [row for row in inputs.tables["deltas"] if row["measurement"] == measurement]
        tracked = inputs.tracked(measurement)
        chosen = [row for one in tracked for row in deltas if (row["cell_label"], row["metric"]) == one]
        found += chosen or _most_telling(deltas, _TIME_FIRST if measurement in replayed else _SPEED_FIRST)
    return found


def _most_telling(deltas: list[Row], preferred: tuple[str, ...]) -> Iterator[Row]:
    labels = list(dict.fromkeys(row["cell_label"] for row in deltas))
    sets = [label for label in labels if label.startswith("set of ")]
    for label in sets or labels:  # a set stands for its traces
        of_cell = [row for row in deltas if row["cell_label"] == label]
        metrics = {row["metric"] for row in of_cell}
        best = next((metric for metric in preferred if metric in metrics), of_cell[0]["metric"])
        yield from (row for row in of_cell if row["metric"] == best)


def outcome(delta: Row) -> str:
    """`ahead` or `behind` for a certain delta, seen from the compared drive; else `open`."""
    if is_missing(delta["delta_pct"]) or not delta["certain"] or not float(delta["delta_pct"]):
        return "open"
    return "ahead" if float(delta["delta_pct"]) > 0 else "behind"


def remarks_of(inputs: Inputs) -> frozenset[str]:
    """Parts of notes that are no doubts: those that a certain delta carries too."""
    return frozenset(part for row in inputs.tables["deltas"] if row["certain"] for part in _parts(row["note"]))


def footnote(deltas: list[Row], remarks: frozenset[str]) -> str:
    """What the star of `certainty_cell` stands for; empty if no delta has one."""
    said = dict.fromkeys(part for row in deltas for part in _parts(row["note"]) if part in remarks)
    return f"* {'; '.join(said)}." if said else ""


def _parts(note: object) -> list[str]:
    return [] if is_missing(note) else str(note).split("; ")


def _doubts(delta: Row, remarks: frozenset[str]) -> str:
    return "; ".join(part for part in _parts(delta["note"]) if part not in remarks)


def sentence(delta: Row, spreads: str = "spreads", remarks: frozenset[str] = frozenset()) -> str:
    """For example `op28 beats op7 at RND 4KiB 0/100 by 62 % (2,310 against 1,428 IOPS), certain: …`.

    Nobody beats anybody where the delta is not certain. `spreads` names what does not overlap where it is; `remarks`
    are parts of the note that are no doubts.
    """
    drive, basis = delta["comparison"], delta["basis"]
    unit = unit_of(delta["metric"], delta["unit"])
    name = metric_name(delta["metric"])
    place = _place(delta["cell_label"], "" if name in {unit, "throughput"} else name)
    note = _doubts(delta, remarks)
    if is_missing(delta["delta_pct"]):
        return f"{drive} and {basis} cannot be compared {place}{note and ': '}{note}."
    change = float(delta["delta_pct"])
    values = f"({number(delta['comparison_value'])} against {quantity(delta['basis_value'], unit)})"
    verb = {"ahead": "beats", "behind": "trails"}.get(outcome(delta))
    if verb is None:
        sure = "certain" if delta["certain"] else "not certain"
        return f"{drive} against {basis} {place}: {percent(change, signed=True)} {values}, {sure}{note and ': '}{note}."
    return f"{drive} {verb} {basis} {place} by {percent(abs(change))} {values}, certain: the {spreads} do not overlap."


def _place(label: str, metric: str) -> str:
    if label.startswith(("replay ", "set of ")):
        return f"in {metric or 'throughput'} of the {label}"
    if label.startswith("application "):
        return f"in {metric} of {label}"
    return f"in {metric} at {label}" if metric else f"at {label}"


def headlines(inputs: Inputs) -> tuple[Headline, ...]:
    """A sentence for each delta that matters, in the order of the study."""
    statistics = {(row["drive"], *_subject(row)): row["statistic"] for row in inputs.tables["summary"]}
    found = []
    deltas = headline_deltas(inputs)
    remarks = remarks_of(inputs)
    for delta in deltas:
        statistic = statistics.get((delta["comparison"], *_subject(delta)))
        found.append(
            Headline(
                delta=percent(delta["delta_pct"], signed=True),
                sentence=sentence(delta, "windows" if statistic == "window average" else "spreads", remarks),
                outcome=outcome(delta),
                context="; ".join(str(p) for p in (delta["measurement"], statistic) if not is_missing(p)),
                anchor=inputs.anchors.get((delta["comparison"], delta["measurement"]), ""),
            )
        )
    return tuple(found)


def first_headlines_of_each(found: tuple[Headline, ...]) -> tuple[Headline, ...]:
    """The first few of each page they lead to, such as of a sweep over many depths; the table below them has all."""
    counts: dict[str, int] = {}
    kept = []
    for one in found:
        counts[one.anchor] = counts.get(one.anchor, 0) + 1
        if counts[one.anchor] <= _MOST_HEADLINES:
            kept.append(one)
    return tuple(kept)


def lead(inputs: Inputs) -> tuple[str, ...]:
    """The verdict in one sentence for each drive that is compared; only what is certain counts."""
    deltas = headline_deltas(inputs)
    if not deltas:
        only = inputs.drives[0] if len(inputs.drives) == 1 else ""
        return (
            f"Only {only} was measured: there is nothing to compare."
            if only
            else "No deltas: nothing can be compared.",
        )
    found = []
    for drive in dict.fromkeys(row["comparison"] for row in deltas):
        rows = [row for row in deltas if row["comparison"] == drive]
        outcomes = [outcome(row) for row in rows]
        ahead, behind, undecided = (outcomes.count(one) for one in ("ahead", "behind", "open"))
        basis, total = rows[0]["basis"], len(rows)
        if undecided == total:
            found.append(f"{drive} and {basis} cannot be told apart: {_of(total, total)} not certain.")
        elif total in (ahead, behind):
            found.append(f"{drive} {'beats' if ahead else 'trails'} {basis} in {_of(total, total)} certain.")
        else:
            parts = [f"beats {basis} in {ahead}"] * bool(ahead) + [f"trails {basis} in {behind}"] * bool(behind)
            rest = f"; {undecided} not certain" if undecided else ""
            found.append(f"{drive} {' and '.join(parts)} of {total} headline comparisons{rest}.")
    return tuple(found)


def _of(count: int, total: int) -> str:
    return "the one headline comparison," if total == 1 else f"all {count} headline comparisons, all"


def verdict_table(inputs: Inputs) -> Table | None:
    """The headlines as a table: a row for each cell, the basis, then every other drive with its delta."""
    deltas = headline_deltas(inputs)
    if not deltas:
        return None
    basis, remarks = deltas[0]["basis"], remarks_of(inputs)
    others = list(dict.fromkeys(row["comparison"] for row in deltas))
    longest = max((abs(float(row["delta_pct"])) for row in deltas if not is_missing(row["delta_pct"])), default=0.0)
    columns = [Column("Workload", numeric=False), Column("Metric", numeric=False), Column(f"{basis} (basis)")]
    for drive in others:
        columns += [Column(drive), Column(f"Δ {drive}"), Column("Sure?", numeric=False)]
    rows = []
    for measurement, label, metric in dict.fromkeys(map(_subject, deltas)):
        by_drive = {row["comparison"]: row for row in deltas if _subject(row) == (measurement, label, metric)}
        first = next(iter(by_drive.values()))
        row = [Cell(label, small=measurement), Cell(heading(metric, first["unit"])), value_cell(first["basis_value"])]
        for drive in others:
            one = by_drive.get(drive)
            row += [Cell(DASH), Cell(DASH), Cell(DASH)] if one is None else [
                value_cell(one["comparison_value"]), delta_cell(one, longest), certainty_cell(one, remarks)
            ]  # fmt: skip
        rows.append(tuple(row))
    shown = set(map(_subject, deltas))
    recordings = [name for row in inputs.tables["summary"] if _subject(row) in shown for name in row["recordings"]]
    return Table(
        id="verdict-table",
        caption="The headline comparisons",
        columns=tuple(columns),
        rows=tuple(rows),
        note=" ".join(
            [
                "Δ is positive where the compared drive is better than the basis, for speeds and for times alike.",
                footnote(deltas, remarks),
            ]
        ),
        sources=inputs.sources(recordings),
    )


def _subject(row: Row) -> tuple[str, str, str]:
    return row["measurement"], row["cell_label"], row["metric"]


def value_cell(value: object) -> Cell:
    """A number as a field."""
    return Cell(number(value), tone="missing" if is_missing(value) else "")


def delta_cell(delta: Row, longest: float) -> Cell:
    """A delta with its sign and a bar, `longest` being the delta whose bar is full."""
    value = delta["delta_pct"]
    if is_missing(value):
        return Cell(percent(value), tone="missing")
    tone = {"ahead": "good", "behind": "bad"}.get(outcome(delta), "")
    return Cell(percent(value, signed=True), tone=tone, bar=float(value) / longest if longest else 0.0)


def certainty_cell(delta: Row, remarks: frozenset[str]) -> Cell:
    """Certain or not, with the doubts; a star where the footnote's remarks apply."""
    star = " *" if any(part in remarks for part in _parts(delta["note"])) else ""
    return Cell(f"{'certain' if delta['certain'] else 'not certain'}{star}", small=_doubts(delta, remarks))
