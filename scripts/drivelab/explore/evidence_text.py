"""What is known of a published number as lines for people: facts aligned, a job that cells share once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from drivelab.report.numbers import amount, size
from drivelab.virtual.clock import ENGINE

Facts = Mapping[str, Any]
Row = tuple[str, str]
"""Label, and what it says; of several rows of one label the first one has it."""

_NUMBERS = {
    "statistic": "statistic", "n": "repeats", "samples": "samples", "scope": "scope", "verdict": "verdict",
    "taint_reason": "taint", "doubts": "doubts", "remarks": "remarks",
}  # fmt: skip
_UNITS = {"pct": "%", "c": "°C", "s": "s", "us": "µs"}
_NOT_AVAILABLE = "not available here"
_SEED = re.compile(r"^randseed=(\d+)\n?", re.MULTILINE)
_LEAST_CHARACTERS = 40


def name_of(row: Facts) -> str:
    """Which number a row is: drive or drives, measurement, cell and metric."""
    drive = row["drive"] if "drive" in row else f"{row['comparison']} against {row['basis']}"
    return f"{drive}, {row['measurement']}, {row['cell_label']}, {row['metric']}"


def lines(facts: Facts, width: int) -> Iterator[str]:
    """Lines of about `width` characters of what `evidence.of_value` or `of_delta` found."""
    yield name_of(facts)
    delta = "delta_pct" in facts
    value = f"{_told(facts['delta_pct'])} %" if delta else f"{_told(facts['value'])} {facts.get('unit') or ''}".strip()
    rows = [("delta" if delta else "value", value)]
    rows += [(label, _told(facts[name])) for name, label in _NUMBERS.items() if facts.get(name) not in (None, [])]
    yield from _aligned(rows, 2, width)
    for side in ("basis", "comparison") if delta else ():
        for one in facts[f"{side}_evidence"]:
            yield ""
            yield from lines(one, width)
    for one in facts.get("recordings", ()):
        yield ""
        yield f"  {one['folder']}"
        yield from _aligned([*_of_recording(one)], 4, width)
        for cells in _alike(one["cells"]):
            yield ""
            yield from _of_cells(cells, str(one["folder"]), width)


def _of_recording(one: Facts) -> Iterator[Row]:
    yield "measured", f"{_at(one['started'])} to {_at(one['finished'])}, {one['clock']} clock"
    yield "protocol", f"{one['protocol']}, plan {one['plan_digest']}, run {one['run']}, scenario {one['scenario']}"
    yield from _labelled("reduced", (one["alterations"] or "").split("; "))
    yield from _labelled("versions", [_words(one["versions"])])
    yield from _labelled("gaps", one["gaps"])
    yield "checksums now", one["checksums"]
    yield from (("", f"{name}: {what}") for name, what in one["altered"].items())
    for seal in one["seals"]:
        yield f"seal, {seal['stage']}", f"{'intact' if seal['intact'] else 'BROKEN'}: {seal['reason']}"
    yield from _labelled("drive", _properties(one["drive"]))
    yield from _labelled("host", _properties(one["host"]))
    states = [(row["name"], row["state"]) for row in one["settings"] or ()]
    there = [f"{name}: {state}" for name, state in states if state != _NOT_AVAILABLE]
    hidden = len(states) - len(there)
    others = f"{hidden} other{'s are' if hidden > 1 else ' is'} {_NOT_AVAILABLE}" if hidden else ""
    yield from _labelled("settings", [*there, others])


def _alike(cells: Sequence[Facts]) -> list[list[Facts]]:
    """Cells that ran the same but for the seed."""
    groups: dict[tuple[str, str], list[Facts]] = {}
    for cell in cells:
        groups.setdefault((_ran(cell), _SEED.sub("", cell["job"] or "")), []).append(cell)
    return list(groups.values())


def _ran(cell: Facts) -> str:
    if cell["job"] is None:
        choice = f"; {_words(cell['choice'])}" if cell["choice"] else ""
        return f"{cell['engine']}{choice}"
    if cell["engine"] == ENGINE:
        return "simulated on the virtual clock, no fio ran"
    return (cell["command"] or "fio, its command not recorded").strip()


def _of_cells(cells: Sequence[Facts], folder: str, width: int) -> Iterator[str]:
    first = cells[0]
    rows = [("ran", _ran(first))]
    if first["job"] is not None:
        seeds = " (randseed: below)" if _SEED.search(first["job"]) else ""
        rows.append(("job.fio", " ".join(_SEED.sub("", first["job"]).split()) + seeds))
    yield f"    {len(cells)} cell{'s' * (len(cells) > 1)}"
    yield from _aligned(rows, 6, width)
    for cell in cells:
        seed = _SEED.search(cell["job"] or "")
        told = [
            cell["directory"].removeprefix(f"{folder}/"),
            *([] if cell["exit_status"] is None else [f"exit status {cell['exit_status']}"]),
            *([f"randseed {seed[1]}"] if seed else []),
        ]
        yield f"      {', '.join(told)}"
        if cell["output"] is not None:
            yield f"        {cell['output'].rpartition('/')[2]}, SHA-256 {cell['output_sha256']}"


def _labelled(label: str, values: Sequence[str]) -> Iterator[Row]:
    there = [one for one in values if one]
    yield from ((label if number == 0 else "", one) for number, one in enumerate(there))


def _properties(facts: Facts) -> list[str]:
    return [_property(name, value) for name, value in facts.items() if value not in (None, "", [])]


def _property(name: str, value: Any) -> str:
    """`capacity: 64 MiB (67,108,864 bytes)` of `capacity_bytes`."""
    if name.endswith("_bytes"):
        shown = amount(value) if name == "memory_bytes" else size(value)  # drives are sold by powers of ten
        shown = shown.replace("\N{NO-BREAK SPACE}", " ")  # a terminal's lines are looked through with common tools
        return f"{_plain(name.removesuffix('_bytes'))}: {shown} ({value:,} bytes)"
    stem, _, unit = name.rpartition("_")
    if stem and unit in _UNITS and isinstance(value, int | float):
        return f"{_plain(stem)}: {_told(value)} {_UNITS[unit]}"
    return f"{_plain(name)}: {_told(value)}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _words(facts: Facts) -> str:
    return ", ".join(f"{_plain(name)} {_told(one)}" for name, one in facts.items() if one not in (None, ""))


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return _words(value)
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _at(text: str) -> str:
    """In UTC, to the second."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _aligned(rows: Sequence[Row], indent: int, width: int) -> Iterator[str]:
    """Labels in a column of their own, words wrapped beside it."""
    column = max(len(label) for label, _ in rows) + 2
    room = max(width - indent - column, _LEAST_CHARACTERS)
    for label, words in rows:
        wrapped = textwrap.wrap(
            words, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]
        for number, line in enumerate(wrapped):
            yield f"{' ' * indent}{label if number == 0 else '':<{column}}{line}"
