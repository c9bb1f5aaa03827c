"""Import printed numbers from a CSV file: tables of block sizes and mixes, windows, tables by capacity.

The header determines the shape of the file:

* `block_size` (`4k`, `512`) or `block_size_kib`, then a column for each mix such as `65/35`, or `read_mb_s` and
  `write_mb_s`; a first column `statistic` gives `mean` or `max` for each row;
* `test,variable,unit,round_labels,v1,v2,…`: a row is a window of rounds, the variable such as `4k random write IOPS`;
  `average_printed` is kept as a note;
* `parameter,unit,threads,queue_depth`, then a column for each capacity such as `512GB`; each column is a drive.

A column `note` is ignored. The evidence for the numbers is unknown, so no statement about repeatability is made.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_text
from drivelab.criteria.steady_state import WINDOW, determine
from drivelab.imported.fio_options import size_bytes
from drivelab.imported.tables import MIB, Recording, printed_value
from drivelab.plan.cell import Cell
from drivelab.tables.labels import UNITS, demand

KIND = "values"
READS = "CSV file of printed numbers"
UNIT_NAMES: dict[str, tuple[str, float]] = {
    "IOPS": ("iops", 1.0),
    "1/s": ("iops", 1.0),
    "KIOPS": ("iops", 1e3),
    "MB/s": ("bandwidth_mib_s", 1e6 / MIB),
    "MiB/s": ("bandwidth_mib_s", 1.0),
    "KiB/s": ("bandwidth_mib_s", 1 / 1024),
    "us": ("mean_latency_us", 1.0),
    "ms": ("mean_latency_us", 1e3),
    "score": ("score", 1.0),
}
"""Metric of a printed unit, and the factor for its numbers."""
_BLOCKS = {"block_size": 1, "block_size_kib": 1024}
_MOST_BYTES, _MOST_ROWS, _MOST_COLUMNS = 1 << 20, 10_000, 200
"""Limits of a table that somebody printed; a row takes the memory of all columns, even if its line is short."""
_DIRECTIONS = {"read": 100, "write": 0}
_MIX = re.compile(r"(\d{1,3})/(\d{1,3})")
_OF_DIRECTION = re.compile(r"(read|write)(?:_(mb_s|mib_s|kib_s|iops))?")
_HEADER_UNITS = {"mb_s": "MB/s", "mib_s": "MiB/s", "kib_s": "KiB/s", "iops": "IOPS"}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
"""Numbers as people print them; Python would also accept `1_000`, which is ambiguous."""
_VARIABLE = re.compile(r"(\d+[km]?) (random|sequential) (read|write)\b.*")
_CAPACITY = re.compile(r"(\d+(?:\.\d+)?)(GB|TB)")
_BYTES = {"GB": 10**9, "TB": 10**12}
_WINDOW_COLUMNS = ("test", "variable", "unit")
_CAPACITY_COLUMNS = ("parameter", "unit", "threads", "queue_depth")


def read(path: Path, drive: str, *, unit: str | None = None, pattern: str | None = None) -> list[Recording]:
    """Return the values of a file as recordings; a table by capacity has one for each drive DRIVE-CAPACITY.

    `unit`, one of UNIT_NAMES, is for tables of block sizes whose columns do not give it or give it wrongly: MiB/s for a
    column of MB/s, but never IOPS. `pattern` is for these tables too; by default it is random for IOPS and latency,
    sequential for throughput. Raises UserError, with the line, for an unknown header or unit, a unit that contradicts
    the file, a repeated value, or a value that is not a positive number.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_text(path, "a CSV file", _MOST_BYTES), newline=""))
        names = list(reader.fieldnames or ())
        rows = list(islice(reader, _MOST_ROWS + 1)) if len(names) <= _MOST_COLUMNS else []
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read ({error}); name a CSV file") from None
    if unit is not None and unit not in UNIT_NAMES:
        raise UserError(f"'{unit}' is not a unit; give one of {', '.join(UNIT_NAMES)}")
    file_of = _File(path, names, rows)
    if len(names) > _MOST_COLUMNS or len(rows) > _MOST_ROWS:
        raise file_of.error(f"has more than {_MOST_COLUMNS} columns or {_MOST_ROWS:,} lines")
    if not rows:
        raise file_of.error("has no line of values")
    if repeated := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise file_of.error(f"has the column '{repeated}' twice")
    if line := next((line for line, row in enumerate(rows, 2) if None in row), None):
        raise file_of.error("has more values than the header has columns", line)
    by_block = names[0] in _BLOCKS or (names[0] == "statistic" and names[1:2] and names[1] in _BLOCKS)
    given = next((f"--{name}" for name, value in (("unit", unit), ("pattern", pattern)) if value), None)
    if given and not by_block:
        raise UserError(
            f"{path}: is not a table of block sizes, and gives its own units and patterns; leave out {given}"
        )
    if set(_WINDOW_COLUMNS) <= set(names):
        return [_windows(file_of, drive)]
    if set(_CAPACITY_COLUMNS) <= set(names):
        return list(_by_capacity(file_of, drive))
    if by_block:
        return [_by_block(file_of, drive, unit, pattern)]
    raise file_of.error("has an unknown header")


class _File:
    def __init__(self, path: Path, names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        self.path, self.names, self.rows = path, names, rows

    def error(self, reason: str, line: int | None = None) -> UserError:
        where = f"{self.path}: " if line is None else f"{self.path}: line {line} "
        return UserError(f"{where}{reason}; docs/importing.md shows the formats")

    def number(self, text: str | None, line: int) -> float:
        value = float(text) if text and _NUMBER.fullmatch(text.strip()) else math.nan
        if not (math.isfinite(value) and value > 0):
            raise self.error(f"has '{text}' instead of a positive number", line)
        return value

    def whole(self, text: str, line: int) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text.strip()):
            raise self.error(f"has '{text}' instead of a whole number", line)
        return int(text)

    def size(self, text: str, factor: int, line: int) -> int:
        try:
            value = round(float(text) * factor) if factor > 1 and _NUMBER.fullmatch(text.strip()) else size_bytes(text)
        except (ValueError, OverflowError):
            value = 0
        if value < 1:
            raise self.error(f"has '{text}' instead of a block size", line)
        return value

    def unit(self, name: str, line: int | None = None) -> tuple[str, float]:
        """Return metric and factor of a printed unit."""
        if name not in UNIT_NAMES:
            raise self.error(f"has the unit '{name}', not one of {', '.join(UNIT_NAMES)}", line)
        return UNIT_NAMES[name]

    def recording(self, drive: str, **more: Any) -> Recording:
        test = re.sub(r"[^a-z0-9]+", "-", self.path.stem.lower()).strip("-")
        title = f"Printed values, {self.path.name}"
        return Recording(drive=drive, kind=KIND, test=test, title=title, **more)

    def once(self, seen: dict[tuple[str, ...], int], key: tuple[str, ...], line: int) -> None:
        """Note the line of `key`; raises UserError if `key` was there before."""
        if key in seen:
            raise self.error(f"repeats {' '.join(key)} of line {seen[key]}", line)
        seen[key] = line

    def value(self, drive: str, label: str, metric: str, value: float) -> dict[str, Any]:
        return printed_value(label, metric, value, f"{self.recording(drive).name}/{self.path.name}")


def _by_block(file: _File, drive: str, unit: str | None, pattern: str | None) -> Recording:
    """Return the recording of a table of block sizes, with a column for each mix or direction."""
    sizes = next(name for name in file.names if name in _BLOCKS)
    columns = {name: _column(file, name, unit) for name in file.names if name not in (sizes, "statistic", "note")}
    values: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(file.rows, 2):
        block_bytes = file.size(row[sizes], _BLOCKS[sizes], line)
        statistic = row.get("statistic", "mean")
        if statistic not in ("mean", "max"):
            raise file.error(f"has the statistic '{statistic}' instead of mean or max", line)
        for name, (share, (metric, factor)) in columns.items():
            access = pattern or ("sequential" if metric == "bandwidth_mib_s" else "random")
            label = Cell(access, share, block_bytes, 1, 1).workload
            if "statistic" in row and metric != "mean_latency_us":
                raise file.error(
                    f"has the statistic '{statistic}', which is for latencies, with {metric}; give a time", line
                )
            row_metric = "max_latency_us" if statistic == "max" else metric
            file.once(seen, (label, row_metric), line)
            values.append(file.value(drive, label, row_metric, factor * file.number(row[name], line)))
    return file.recording(drive, summary=values)


def _column(file: _File, name: str, unit: str | None) -> tuple[int, tuple[str, float]]:
    """Return share of reads, metric and factor of a column."""
    if (mix := _MIX.fullmatch(name)) and int(mix[1]) + int(mix[2]) == 100:
        if unit is None:
            raise UserError(f"{file.path}: does not give the unit of its numbers; give --unit")
        return int(mix[1]), file.unit(unit)
    if direction := _OF_DIRECTION.fullmatch(name):
        in_name = _HEADER_UNITS.get(direction[2] or "")
        unit_name = unit or in_name
        if unit_name is None:
            raise UserError(f"{file.path}: does not give the unit of its column {name}; give --unit")
        if in_name and file.unit(unit_name)[0] != file.unit(in_name)[0]:
            raise UserError(
                f"{file.path}: column {name} is in {in_name}, another quantity than {unit_name}; leave out --unit"
            )
        return _DIRECTIONS[direction[1]], file.unit(unit_name)
    raise file.error(f"has a column '{name}', which is not a mix such as 65/35 and not reads or writes")


def _windows(file: _File, drive: str) -> Recording:
    """Return the recording of printed windows, with a new determination; rounds are numbered from 1."""
    rounds = [name for name in file.names if re.fullmatch(r"v\d+", name)]
    windows, values, notes = [], [], []
    from_zero = any((row.get("round_labels") or "").split()[:1] == ["0"] for row in file.rows)  # as TKperf's
    seen: dict[tuple[str, ...], int] = {}
    for step, row in enumerate(file.rows):
        line = step + 2
        match = _VARIABLE.fullmatch(row["variable"])
        if match is None:
            raise file.error(f"has the variable '{row['variable']}'; write it as '4k random write IOPS'", line)
        cell = Cell(match[2], _DIRECTIONS[match[3]], file.size(match[1], 1, line), 1, 1)
        metric, factor = file.unit(row["unit"], line)
        file.once(seen, (cell.workload, metric), line)
        numbers = [factor * file.number(row[name], line) for name in rounds]
        labels = [file.whole(label, line) for label in (row.get("round_labels") or "").split()] or list(
            range(1, len(numbers) + 1)
        )
        if len(labels) != len(numbers):
            raise file.error("has different numbers of rounds and values", line)
        first = labels[0] + 1 if "round_labels" in row and from_zero else labels[0]
        windows.append(_window(step, cell.workload, metric, numbers, first))
        values.append({
            **file.value(drive, cell.workload, metric, windows[-1]["average"]), "statistic": "window average",
            "spread_low": min(numbers), "spread_high": max(numbers), "samples": numbers, "scope": "rounds",
            "verdict": "steady" if windows[-1]["reached"] else "not steady",
        })  # fmt: skip
        if row.get("average_printed"):
            notes.append(f"Printed average of {cell.workload}: {row['average_printed']} {row['unit']}.")
    return file.recording(drive, steady_state=windows, summary=values, notes=tuple(notes))


def _window(step: int, variable: str, metric: str, values: list[float], first: int) -> dict[str, Any]:
    """Return a row of table `steady_state` without its key."""
    state = determine(values, window=max(len(values), WINDOW), first_round=first)
    last = first + len(values) - 1
    return {
        "step": step, "variable": variable, "metric": metric, "unit": UNITS[metric], "reached": state.steady,
        "rounds": last, "window_start": first, "window_end": last, "values": values,
        **{name: getattr(state, name) for name in _OF_STATE},
    }  # fmt: skip


_OF_STATE = ("average", "allowed_data_excursion", "measured_data_excursion", "allowed_slope_excursion",
             "measured_slope_excursion", "slope", "intercept", "residual_drift_pct")  # fmt: skip


def _by_capacity(file: _File, drive: str) -> Iterator[Recording]:
    """Yield the recordings of a table with a column for each capacity of a product."""
    others = (*_CAPACITY_COLUMNS, "table", "note")
    for name in (name for name in file.names if name not in others):
        match = _CAPACITY.fullmatch(name)
        if match is None:
            raise file.error(f"has a column '{name}', which is not a capacity such as 512GB")
        drive_name = f"{drive}-{name.lower()}"
        capacity_bytes = round(float(match[1]) * _BYTES[match[2]])
        values = []
        seen: dict[tuple[str, ...], int] = {}
        for line, row in enumerate(file.rows, 2):
            metric, factor = file.unit(row["unit"], line)
            label = row["parameter"]
            if row["threads"] and row["queue_depth"]:
                load = (file.whole(row[column], line) for column in ("threads", "queue_depth"))
                label += f" {demand(*load)}"
            file.once(seen, (label, metric), line)
            values.append(file.value(drive_name, label, metric, factor * file.number(row[name], line)))
        yield file.recording(drive_name, summary=values, facts={"drive": {"capacity_bytes": capacity_bytes}})
