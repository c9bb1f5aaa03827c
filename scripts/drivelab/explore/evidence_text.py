"""Format the evidence of a published number as text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from drivelab.core.grouping import grouped
from drivelab.report.numbers import amount, size
from drivelab.virtual_clock.cells import ENGINE

Facts = Mapping[str, Any]
Row = tuple[str, str]
"""Label and text; of several rows of one label, only the first has the label."""

_NUMBERS = {
    "statistic": "statistic", "n": "repeats", "samples": "samples", "scope": "scope", "verdict": "verdict",
    "taint_reason": "taint", "host_limit": "host limit", "doubts": "doubts", "remarks": "remarks",
}  # fmt: skip
_UNITS = {"pct": "%", "c": "°C", "s": "s", "us": "µs", "mhz": "MHz", "w": "W"}
_NOT_AVAILABLE = "not available here"
_SEED = re.compile(r"^randseed=(\d+)\n?", re.MULTILINE)
_LEAST_CHARACTERS = 40


def name_of(row: Facts) -> str:
    """Return the name of a number: drives, measurement, cell and metric."""
    drive = row["drive"] if "drive" in row else f"{row['comparison']} against {row['basis']}"
    return f"{drive}, {row['measurement']}, {row['cell_label']}, {row['metric']}"


def lines(facts: Facts, width: int) -> Iterator[str]:
    """Yield lines of about `width` characters with facts from `evidence`."""
    yield name_of(facts)
    delta = "delta_pct" in facts
    value = (
        f"{_shown(facts['delta_pct'])} %" if delta else f"{_shown(facts['value'])} {facts.get('unit') or ''}".strip()
    )
    rows = [("delta" if delta else "value", value), ("recomputed", _recomputed(facts))]
    rows += [(label, _shown(facts[name])) for name, label in _NUMBERS.items() if facts.get(name) not in (None, [])]
    yield from _aligned(rows, 2, width)
    for side in ("basis", "comparison") if delta else ():
        for value_facts in facts[f"{side}_evidence"]:
            yield ""
            yield from lines(value_facts, width)
    for recording in facts.get("recordings", ()):
        yield ""
        yield f"  {recording['folder']}"
        yield from _aligned([*_recording_rows(recording)], 4, width)
        for cells in _alike(recording["cells"]):
            yield ""
            yield from _cell_lines(cells, str(recording["folder"]), width)


def _recomputed(facts: Facts) -> str:
    """Say what the recordings give now."""
    if facts["agrees"]:
        more = "; interval and verdict are the table's" if "delta_pct" in facts else ""
        return f"the recordings give the same number{more}"
    if facts["recomputed"] is None:
        return "NOT CONFIRMED: the number cannot be computed from these recordings"
    return f"NOT CONFIRMED: the recordings give {_shown(facts['recomputed'])}; delete the table and run the study again"


def _recording_rows(recording: Facts) -> Iterator[Row]:
    yield "measured", f"{_at(recording['started'])} to {_at(recording['finished'])}, {recording['clock']} clock"
    plan = f"plan {recording['plan_digest']}, run {recording['run']}, scenario {recording['scenario']}"
    yield "protocol", f"{recording['protocol']}, {plan}"
    yield from _labelled("reduced", (recording["alterations"] or "").split("; "))
    yield from _labelled("versions", [_joined(recording["versions"])])
    yield from _labelled("gaps", recording["gaps"])
    yield "checksums now", recording["checksums"]
    yield from (("", f"{name}: {change}") for name, change in recording["altered"].items())
    for seal in recording["seals"]:
        yield f"seal, {seal['stage']}", f"{'intact' if seal['intact'] else 'BROKEN'}: {seal['reason']}"
    yield from _labelled("drive", _properties(recording["drive"]))
    yield from _labelled("host", _properties(recording["host"]))
    states = [(row["name"], row["state"]) for row in recording["settings"] or ()]
    available = [f"{name}: {state}" for name, state in states if state != _NOT_AVAILABLE]
    hidden = len(states) - len(available)
    others = f"{hidden} other{'s are' if hidden > 1 else ' is'} {_NOT_AVAILABLE}" if hidden else ""
    yield from _labelled("settings", [*available, others])


def _alike(cells: Sequence[Facts]) -> list[list[Facts]]:
    """Group cells that ran the same job except for its seed."""
    groups = grouped(cells, lambda cell: (_ran(cell), _SEED.sub("", cell["job"] or "")))
    return list(groups.values())


def _ran(cell: Facts) -> str:
    if cell["job"] is None:
        choice = f"; {_joined(cell['choice'])}" if cell["choice"] else ""
        return f"{cell['engine']}{choice}"
    if cell["engine"] == ENGINE:
        return "simulated on the virtual clock, no fio ran"
    return (cell["command"] or "fio, its command not recorded").strip()


def _cell_lines(cells: Sequence[Facts], folder: str, width: int) -> Iterator[str]:
    first = cells[0]
    rows = [("ran", _ran(first))]
    if first["job"] is not None:
        seeds = " (randseed: below)" if _SEED.search(first["job"]) else ""
        rows.append(("job.fio", " ".join(_SEED.sub("", first["job"]).split()) + seeds))
    yield f"    {len(cells)} cell{'s' * (len(cells) > 1)}"
    yield from _aligned(rows, 6, width)
    for cell in cells:
        seed = _SEED.search(cell["job"] or "")
        details = [
            cell["directory"].removeprefix(f"{folder}/"),
            *([] if cell["exit_status"] is None else [f"exit status {cell['exit_status']}"]),
            *([f"randseed {seed[1]}"] if seed else []),
        ]
        yield f"      {', '.join(details)}"
        if cell["output"] is not None:
            yield f"        {cell['output'].rpartition('/')[2]}, SHA-256 {cell['output_sha256']}"


def _labelled(label: str, values: Sequence[str]) -> Iterator[Row]:
    present = [value for value in values if value]
    yield from ((label if number == 0 else "", value) for number, value in enumerate(present))


def _properties(facts: Facts) -> list[str]:
    return [_property(name, value) for name, value in facts.items() if value not in (None, "", [])]


def _property(name: str, value: Any) -> str:
    """Format a property: `capacity_bytes` as `capacity: 64 MiB (67,108,864 bytes)`."""
    if name.endswith("_bytes"):
        shown = amount(value) if name == "memory_bytes" else size(value)  # drives are sold in powers of ten
        shown = shown.replace("\N{NO-BREAK SPACE}", " ")  # so that grep finds it in a terminal
        return f"{_plain(name.removesuffix('_bytes'))}: {shown} ({value:,} bytes)"
    stem, _, unit = name.rpartition("_")
    if stem and unit in _UNITS and isinstance(value, int | float):
        return f"{_plain(stem)}: {_shown(value)} {_UNITS[unit]}"
    return f"{_plain(name)}: {_shown(value)}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _joined(facts: Facts) -> str:
    return ", ".join(f"{_plain(name)} {_shown(value)}" for name, value in facts.items() if value not in (None, ""))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return _joined(value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _at(text: str) -> str:
    """Format a time in UTC, to the second."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _aligned(rows: Sequence[Row], indent: int, width: int) -> Iterator[str]:
    """Yield lines with the labels in one column and the wrapped texts in a second."""
    column = max(len(label) for label, _ in rows) + 2
    room = max(width - indent - column, _LEAST_CHARACTERS)
    for label, text in rows:
        wrapped = textwrap.wrap(text, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [
            ""
        ]
        for number, line in enumerate(wrapped):
            yield f"{' ' * indent}{label if number == 0 else '':<{column}}{line}"
