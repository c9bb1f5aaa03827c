"""Numbers that somebody printed, typed into a CSV file: tables of block sizes and mixes, windows, tables by capacity.

A file is of the shape that its header says:

* `block_size` (`4k`, `512`) or `block_size_kib`, then a column for each mix such as `65/35`, or `read_mb_s` and
  `write_mb_s`; with a first column `statistic`, `mean` or `max`, each row is of that;
* `test,variable,unit,round_labels,v1,v2,…`: a row is a window of rounds, the variable such as `4k random write IOPS`;
  `average_printed` is kept as a note;
* `parameter,unit,threads,queue_depth`, then a column for each capacity such as `512GB`, each of which is a drive.

A column `note` is left out. What the numbers stand on is unknown: nothing is said of how they would repeat.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.analysis.delta_doubts import PRINTED
from drivelab.analysis.labels import KINDS, UNITS, demand
from drivelab.analysis.steady_state import WINDOW, determine
from drivelab.analysis.verdict import AS_ASKED
from drivelab.errors import UserError
from drivelab.imported.fio_options import size_bytes
from drivelab.imported.tables import MIB, Recording
from drivelab.plan.cell import Cell

KIND = "values"
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
"""Metric of a unit as it is printed, and what a number is multiplied by."""
_BLOCKS = {"block_size": 1, "block_size_kib": 1024}
_DIRECTIONS = {"read": 100, "write": 0}
_MIX = re.compile(r"(\d{1,3})/(\d{1,3})")
_OF_DIRECTION = re.compile(r"(read|write)(?:_(mb_s|mib_s|kib_s|iops))?")
_HEADER_UNITS = {"mb_s": "MB/s", "mib_s": "MiB/s", "kib_s": "KiB/s", "iops": "IOPS"}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
"""As people print numbers; Python would also take `1_000` for one, which may be anything."""
_VARIABLE = re.compile(r"(\d+[km]?) (random|sequential) (read|write)\b.*")
_CAPACITY = re.compile(r"(\d+(?:\.\d+)?)(GB|TB)")
_BYTES = {"GB": 10**9, "TB": 10**12}
_WINDOW_COLUMNS = ("test", "variable", "unit")
_CAPACITY_COLUMNS = ("parameter", "unit", "threads", "queue_depth")


def read(path: Path, drive: str, *, unit: str | None = None, pattern: str | None = None) -> list[Recording]:
    """The values of a file; of a table by capacity, a recording for each, of the drive DRIVE-CAPACITY.

    `unit`, one of UNIT_NAMES, is for tables of block sizes whose columns do not say it, or say it wrongly: MiB/s for a
    column of MB/s, but never IOPS for it. `pattern` of these is random for IOPS and latency and sequential for
    throughput where it is None. Raises UserError for another header, an unknown unit, one that contradicts the file,
    a value that is there twice, and what is no positive number, by its line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), list(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({error}); name a CSV file") from None
    if unit is not None and unit not in UNIT_NAMES:
        raise UserError(f"'{unit}' is no unit; give one of {', '.join(UNIT_NAMES)}")
    file_of = _File(path, names, rows)
    if not rows:
        raise file_of.error("has no line of values")
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise file_of.error(f"has the column '{twice}' twice")
    if line := next((line for line, row in enumerate(rows, 2) if None in row), None):
        raise file_of.error("has more values than the header has columns", line)
    by_block = names[0] in _BLOCKS or (names[0] == "statistic" and names[1:2] and names[1] in _BLOCKS)
    given = next((f"--{name}" for name, one in (("unit", unit), ("pattern", pattern)) if one), None)
    if given and not by_block:
        raise UserError(f"{path}: is no table of block sizes, and says itself what its numbers are; leave out {given}")
    if set(_WINDOW_COLUMNS) <= set(names):
        return [_windows(file_of, drive)]
    if set(_CAPACITY_COLUMNS) <= set(names):
        return list(_by_capacity(file_of, drive))
    if by_block:
        return [_by_block(file_of, drive, unit, pattern)]
    raise file_of.error("has another header than such tables have")


class _File:
    def __init__(self, path: Path, names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        self.path, self.names, self.rows = path, names, rows

    def error(self, reason: str, line: int | None = None) -> UserError:
        where = f"{self.path}: " if line is None else f"{self.path}: line {line} "
        return UserError(f"{where}{reason}; docs/importing.md shows what such a table looks like")

    def number(self, text: str | None, line: int) -> float:
        value = float(text) if text and _NUMBER.fullmatch(text.strip()) else math.nan
        if not (math.isfinite(value) and value > 0):
            raise self.error(f"has '{text}' where a positive number should be", line)
        return value

    def whole(self, text: str, line: int) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text.strip()):
            raise self.error(f"has '{text}' where a whole number should be", line)
        return int(text)

    def size(self, text: str, factor: int, line: int) -> int:
        try:
            found = round(float(text) * factor) if factor > 1 and _NUMBER.fullmatch(text.strip()) else size_bytes(text)
        except (ValueError, OverflowError):
            found = 0
        if found < 1:
            raise self.error(f"has '{text}' where a block size should be", line)
        return found

    def unit(self, name: str, line: int | None = None) -> tuple[str, float]:
        """Metric and factor of a printed unit."""
        if name not in UNIT_NAMES:
            raise self.error(f"has the unit '{name}', not one of {', '.join(UNIT_NAMES)}", line)
        return UNIT_NAMES[name]

    def recording(self, drive: str, **more: Any) -> Recording:
        test = re.sub(r"[^a-z0-9]+", "-", self.path.stem.lower()).strip("-")
        title = f"Printed values, {self.path.name}"
        return Recording(drive=drive, kind=KIND, test=test, title=title, **more)

    def once(self, found: dict[tuple[str, ...], int], key: tuple[str, ...], line: int) -> None:
        """Raises UserError when `key` was there before; notes its line."""
        if key in found:
            raise self.error(f"has {' '.join(key)} again, as line {found[key]} has", line)
        found[key] = line

    def value(self, drive: str, label: str, metric: str, value: float) -> dict[str, Any]:
        """A row of table `summary` without what identifies the recording."""
        return {
            "cell_label": label,
            "metric": metric,
            "kind": KINDS.get(metric, "time"),
            "unit": UNITS.get(metric, "us"),
            "value": value,
            "statistic": PRINTED,
            "verdict": AS_ASKED[1],
            "evidence": [f"{self.recording(drive).name}/{self.path.name}"],
        }


def _by_block(file: _File, drive: str, unit: str | None, pattern: str | None) -> Recording:
    """A table of block sizes, with a column for each mix or direction."""
    sizes = next(name for name in file.names if name in _BLOCKS)
    columns = {name: _column(file, name, unit) for name in file.names if name not in (sizes, "statistic", "note")}
    values: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(file.rows, 2):
        block_bytes = file.size(row[sizes], _BLOCKS[sizes], line)
        statistic = row.get("statistic", "mean")
        if statistic not in ("mean", "max"):
            raise file.error(f"has the statistic '{statistic}', neither mean nor max", line)
        for name, (share, (metric, factor)) in columns.items():
            found = pattern or ("sequential" if metric == "bandwidth_mib_s" else "random")
            label = Cell(found, share, block_bytes, 1, 1).workload
            if "statistic" in row and metric != "mean_latency_us":
                raise file.error(f"has the statistic '{statistic}', as latencies have, of {metric}; give a time", line)
            of_row = "max_latency_us" if statistic == "max" else metric
            file.once(seen, (label, of_row), line)
            values.append(file.value(drive, label, of_row, factor * file.number(row[name], line)))
    return file.recording(drive, summary=values)


def _column(file: _File, name: str, unit: str | None) -> tuple[int, tuple[str, float]]:
    """Share of reads, metric and factor of a column."""
    if (mix := _MIX.fullmatch(name)) and int(mix[1]) + int(mix[2]) == 100:
        if unit is None:
            raise UserError(f"{file.path}: does not say the unit of its numbers; give --unit")
        return int(mix[1]), file.unit(unit)
    if direction := _OF_DIRECTION.fullmatch(name):
        in_name = _HEADER_UNITS.get(direction[2] or "")
        said = unit or in_name
        if said is None:
            raise UserError(f"{file.path}: does not say the unit of its column {name}; give --unit")
        if in_name and file.unit(said)[0] != file.unit(in_name)[0]:
            raise UserError(
                f"{file.path}: column {name} is in {in_name}, which is no other name for {said}; leave out --unit"
            )
        return _DIRECTIONS[direction[1]], file.unit(said)
    raise file.error(f"has a column '{name}', neither a mix such as 65/35 nor reads or writes")


def _windows(file: _File, drive: str) -> Recording:
    """Windows of rounds as they were printed, judged anew; rounds are numbered from 1."""
    rounds = [name for name in file.names if re.fullmatch(r"v\d+", name)]
    windows, values, notes = [], [], []
    seen: dict[tuple[str, ...], int] = {}
    for step, row in enumerate(file.rows):
        line = step + 2
        match = _VARIABLE.fullmatch(row["variable"])
        if match is None:
            raise file.error(f"has the variable '{row['variable']}', not such as '4k random write IOPS'", line)
        cell = Cell(match[2], _DIRECTIONS[match[3]], file.size(match[1], 1, line), 1, 1)
        metric, factor = file.unit(row["unit"], line)
        file.once(seen, (cell.workload, metric), line)
        numbers = [factor * file.number(row[name], line) for name in rounds]
        labels = [file.whole(one, line) for one in (row.get("round_labels") or "").split()] or list(
            range(1, len(numbers) + 1)
        )
        if len(labels) != len(numbers):
            raise file.error("has another number of rounds than of values", line)
        first = labels[0] + 1 if "round_labels" in row and _from_zero(file) else labels[0]
        windows.append(_window(step, cell.workload, metric, numbers, first))
        values.append(
            {
                **file.value(drive, cell.workload, metric, windows[-1]["average"]),
                "statistic": "window average",
                "spread_low": min(numbers),
                "spread_high": max(numbers),
                "samples": numbers,
                "scope": "rounds",
                "verdict": "steady" if windows[-1]["reached"] else "not steady",
            }
        )
        if row.get("average_printed"):
            notes.append(f"Printed average of {cell.workload}: {row['average_printed']} {row['unit']}.")
    return file.recording(drive, steady_state=windows, summary=values, notes=tuple(notes))


def _from_zero(file: _File) -> bool:
    """Whether the labels of the rounds count from 0, as TKperf's do."""
    return any((row.get("round_labels") or "").split()[:1] == ["0"] for row in file.rows)


def _window(step: int, variable: str, metric: str, values: list[float], first: int) -> dict[str, Any]:
    """A row of table `steady_state` without its key."""
    found = determine(values, window=max(len(values), WINDOW), first_round=first)
    last = first + len(values) - 1
    return {
        "step": step,
        "variable": variable,
        "metric": metric,
        "unit": UNITS[metric],
        "reached": found.steady,
        "rounds": last,
        "window_start": first,
        "window_end": last,
        "values": values,
        "average": found.average,
        "allowed_data_excursion": found.allowed_data_excursion,
        "measured_data_excursion": found.measured_data_excursion,
        "allowed_slope_excursion": found.allowed_slope_excursion,
        "measured_slope_excursion": found.measured_slope_excursion,
        "slope": found.slope,
        "intercept": found.intercept,
        "residual_drift_pct": found.residual_drift_pct,
    }


def _by_capacity(file: _File, drive: str) -> Iterator[Recording]:
    """A table with a column for each capacity of a product."""
    others = (*_CAPACITY_COLUMNS, "table", "note")
    for name in (one for one in file.names if one not in others):
        match = _CAPACITY.fullmatch(name)
        if match is None:
            raise file.error(f"has a column '{name}', no capacity such as 512GB")
        this = f"{drive}-{name.lower()}"
        capacity_bytes = round(float(match[1]) * _BYTES[match[2]])
        values = []
        seen: dict[tuple[str, ...], int] = {}
        for line, row in enumerate(file.rows, 2):
            metric, factor = file.unit(row["unit"], line)
            label = row["parameter"]
            if row["threads"] and row["queue_depth"]:
                load = (file.whole(row[one], line) for one in ("threads", "queue_depth"))
                label += f" {demand(*load)}"
            file.once(seen, (label, metric), line)
            values.append(file.value(this, label, metric, factor * file.number(row[name], line)))
        yield file.recording(this, summary=values, facts={"drive": {"capacity_bytes": capacity_bytes}})
