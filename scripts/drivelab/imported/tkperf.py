"""Import the XML file of TKperf: its IOPS, throughput, latency and write saturation tests of an SSD.

The root is named after the test. Its elements hold JSON text (`toXml` in TKperf's perfTest/DeviceTests.py and
PerfTest.py): `testdate`, `devinfo` (lines of hdparm or a similar tool), `kernel`, `lsb`, `ioperfversion`, and for each
test an element `iops`, `tp`, `lat` or `writesat` with `fioversion`, `numjobs`, `iodepth`, `runtime`, `roundmat` and
TKperf's own steady state, which is not read: drivelab determines it again. `roundmat` is by round, mix and block size
for IOPS (I/Os per second) and latency (least, largest, mean in us); by block size, direction and round for throughput
(KiB/s); for write saturation a list of IOPS and a list of latencies, one value per minute.
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_text
from drivelab.imported.tables import MIB, WINDOW, Recording, cell_row
from drivelab.plan.cell import Cell
from drivelab.tables.labels import STEADY_STATE

KIND = "tkperf"
READS = "XML file of TKperf"
RUNTIME_S = 60
"""Run time of every cell, before TKperf had an option for it."""
_MOST_BYTES = 4 << 20
"""Size limit: a file of all tests has less than 1 MiB."""
_KIB = 1024
_IOPS_MIXES, _IOPS_BLOCKS = (100, 95, 65, 50, 35, 5, 0), (1024 * _KIB, 128 * _KIB, 64 * _KIB, 32 * _KIB, 16 * _KIB,
                                                         8 * _KIB, 4 * _KIB, 512)  # fmt: skip
_LATENCY_MIXES, _LATENCY_BLOCKS = (100, 65, 0), (8 * _KIB, 4 * _KIB, 512)
_THROUGHPUT_BLOCKS = (1024 * _KIB, 64 * _KIB, 8 * _KIB, 4 * _KIB, 512)
_MIX_OF_LATENCY = 65
_DRIVE_LINES = {
    "model": "Model Number|mn|Product|E: ID_MODEL",
    "serial": "Serial Number|sn|E: ID_SERIAL_SHORT",
    "firmware": "Firmware Revision|fr|Revision Level",
}
"""Names in the lines of hdparm, nvme (NVMe), sginfo (SAS) or udevadm (others)."""
_BYTES = re.compile(r"Device [Ss]ize(?: \(bytes\))?: (\d+)")
_SIZE = re.compile(r"device size with M = 1000\*1000:\s*(\d+) MBytes")
_CACHE = re.compile(r"write-caching\s*=\s*\d+\s*\((\w+)\)")
_WHOLE = re.compile(r"[0-9]{1,9}")
_SECTOR = re.compile(r"Device Logical Sector Size: (\d+)")
_SECTOR_WITHOUT_512 = 4096


class Section:
    """The element of a test, and the file around it."""

    def __init__(self, path: Path, root: ElementTree.Element, element: ElementTree.Element) -> None:
        self.path, self.root, self.element = path, root, element

    def error(self, reason: str) -> UserError:
        return UserError(f"{self.path}: <{self.element.tag}> {reason}; import a complete result of TKperf's SSD tests")

    def value(self, name: str, default: Any = None, *, of_file: bool = False) -> Any:
        """Return the JSON in the text of an element; `default` if it is missing, empty or null."""
        text = (self.root if of_file else self.element).findtext(name)
        if text is None or not text.strip():
            return default
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):  # ValueError also for huge numbers, RecursionError for deep nesting
            raise self.error(f"has no valid JSON in <{name}>") from None
        return default if parsed is None else parsed

    @property
    def about(self) -> str:
        """TKperf's lines about the drive."""
        about = self.value("devinfo", "", of_file=True)
        return about if isinstance(about, str) else ""

    @property
    def sector_bytes(self) -> int | None:
        """Size of the drive's logical sectors, if TKperf recorded it."""
        match = _SECTOR.search(self.about)
        return int(match[1]) if match else None

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a whole number above 0, which TKperf writes as a number or a string."""
        number = self.value(name, default)
        if isinstance(number, str) and _WHOLE.fullmatch(number):
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.error(f"has no whole number in <{name}>" + ("" if number is None else f", but {number!r}"))
        if number < 1:
            raise self.error(f"has {number} in <{name}> instead of a number above 0")
        return number

    def number(self, value: Any, where: str) -> float:
        """Return a measured value, which must be a positive number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.error(f"has {value!r} for {where} instead of a positive number")
        return float(value)

    def parts(self, value: Any, count: int | None, where: str) -> list[Any]:
        """Return a list of length `count`, or of any length above 0 if `count` is None."""
        if not isinstance(value, list) or not value or len(value) != (count or len(value)):
            raise self.error(f"has {'the wrong number of values for' if count else 'no values for'} {where}")
        return value

    def blocks(self, rows: Mapping[str, Any], known: tuple[int, ...]) -> tuple[int, ...]:
        """Return the block sizes of a test; each of its `rows` must have one value per block size.

        TKperf leaves out 512 bytes, the last of `known`, on a drive with 4096-byte sectors, and never another size.
        """
        lengths = {where: len(row) if isinstance(row, list) else 0 for where, row in rows.items()}
        ((count, _),) = Counter(lengths.values()).most_common(1)
        if count not in (len(known), len(known) - 1):
            raise self.error(
                f"has {count} block sizes in <roundmat> instead of {len(known)}, or {len(known) - 1} without 512 bytes"
            )
        for where, length in lengths.items():
            if length != count:
                raise self.error(f"has {length} values for {where}, but {count} in the other rows of <roundmat>")
        if self.sector_bytes is not None and (self.sector_bytes == _SECTOR_WITHOUT_512) != (count < len(known)):
            raise self.error(
                f"has {count} block sizes in <roundmat>, which does not fit a drive with {self.sector_bytes}-byte "
                "sectors"
            )
        return known[:count]


def read(path: Path, drive: str, date: str | None = None) -> list[Recording]:
    """Return each test of a file as a recording of `drive`; `date` (ISO 8601) is for a file without a test date.

    Raises UserError for a file that is not from TKperf, for tests of hard disks (their rounds are positions, not
    repeats), and for values that are missing, zero or not numbers.
    """
    text = read_text(path, "TKperf's XML file", _MOST_BYTES)
    if "<!DOCTYPE" in text:  # entities of a document type may expand without limit, or name other files
        raise UserError(f"{path}: has a document type, which TKperf never writes; name TKperf's XML file")
    try:
        root = ElementTree.fromstring(text)
    except (ValueError, ElementTree.ParseError) as error:
        raise UserError(f"{path}: is not XML ({error}); name TKperf's XML file") from None
    recordings = [_recording(Section(path, root, element), drive, date) for element in root if element.tag in _TESTS]
    if not recordings:
        raise UserError(f"{path}: has none of the elements {', '.join(_TESTS)}; name TKperf's XML file")
    if len({recording.test for recording in recordings}) != len(recordings):
        raise UserError(f"{path}: has the same test twice; name a file of one run of TKperf")
    return recordings


def _recording(section: Section, drive: str, date: str | None) -> Recording:
    test, title, rows = _TESTS[section.element.tag]
    test_date = section.value("testdate", date, of_file=True)
    try:
        started = datetime.fromisoformat(str(test_date)).replace(tzinfo=UTC)
    except ValueError:
        raise UserError(f"{section.path}: does not give the date of the test; give --date YYYY-MM-DD") from None
    is_loop = section.element.tag != "writesat"
    if is_loop and section.element.find("stdyrounds") is None:
        raise section.error("has no <stdyrounds>, like a test of a hard disk, whose rounds are positions, not repeats")
    runtime_s = float(section.whole("runtime", RUNTIME_S))
    threads, depth, cells = section.whole("numjobs"), section.whole("iodepth"), []
    for count, (cell, number, place, measured) in enumerate(rows(section, threads, depth)):
        kind, until = ("loop", STEADY_STATE) if is_loop else ("soak", None)
        timed = {"started": started, "elapsed_s": count * runtime_s, "runtime_s": runtime_s}
        facts = {**timed, "filled": is_loop, "directory": section.path.name, **_counts(cell, measured, runtime_s)}
        cells.append(cell_row(cell, kind=kind, number=number, place=place, until=until, **facts, **measured))
    return Recording(
        drive=drive,
        kind=KIND,
        test=test,
        title=f"{title}, TKperf",
        cells=cells,
        until={**WINDOW, "track": [_TRACKED[section.element.tag]]} if is_loop else None,
        facts=_facts(section, str(test_date), threads, depth),
        notes=tuple(_notes(section)),
        to_the_day=True,
    )


_Row = tuple[Cell, int, int, dict[str, float]]


def _by_mix(
    section: Section, mixes: tuple[int, ...], known: tuple[int, ...], threads: int, depth: int
) -> Iterator[tuple[Cell, int, int, Any]]:
    """Yield cell, round, place and value of a matrix by round, mix and block size."""
    rounds = section.parts(section.value("roundmat"), None, "<roundmat>")
    by_round = [section.parts(row, len(mixes), f"mixes in round {number}") for number, row in enumerate(rounds, 1)]
    rows = {
        f"the mix {share}/{100 - share} of round {number}": row
        for number, matrix in enumerate(by_round, 1)
        for share, row in zip(mixes, matrix, strict=True)
    }
    blocks = section.blocks(rows, known)
    for number, matrix in enumerate(by_round, 1):
        values = (value for row in matrix for value in row)
        for place, ((share, block), value) in enumerate(zip(product(mixes, blocks), values, strict=True)):
            yield Cell("random", share, block, threads, depth), number, place, value


def _iops(section: Section, threads: int, depth: int) -> Iterator[_Row]:
    for cell, number, place, value in _by_mix(section, _IOPS_MIXES, _IOPS_BLOCKS, threads, depth):
        yield cell, number, place, _rates(cell, section.number(value, f"{cell.workload} in round {number}"))


def _throughput(section: Section, threads: int, depth: int) -> Iterator[_Row]:
    by_block = section.parts(section.value("roundmat"), None, "<roundmat>")
    blocks = section.blocks({"<roundmat>": by_block}, _THROUGHPUT_BLOCKS)
    lists = [section.parts(directions, 2, "directions") for directions in by_block]
    rounds = len(section.parts(lists[0][1], None, "writes of 1024 KiB"))
    for number in range(1, rounds + 1):
        for place in range(2 * len(blocks)):
            block, direction = divmod(place, 2)
            cell = Cell("sequential", (100, 0)[direction], blocks[block], threads, depth)
            values = section.parts(lists[block][direction], rounds, f"rounds of {cell.workload}")
            rate_kib_s = section.number(values[number - 1], f"{cell.workload} in round {number}")
            yield cell, number, place, _rates(cell, rate_kib_s * _KIB / cell.block_size_bytes)


def _latency(section: Section, threads: int, depth: int) -> Iterator[_Row]:
    for cell, number, place, values in _by_mix(section, _LATENCY_MIXES, _LATENCY_BLOCKS, threads, depth):
        yield cell, number, place, _latencies(section, cell, number, values)


def _saturation(section: Section, threads: int, depth: int) -> Iterator[_Row]:
    rates, latencies = section.parts(section.value("roundmat"), 2, "IOPS and latencies")
    cell = Cell("random", 0, 4 * _KIB, threads, depth)
    section.parts(latencies, len(section.parts(rates, None, "IOPS")), "IOPS")
    for number, (iops, values) in enumerate(zip(rates, latencies, strict=True), 1):
        rates = _rates(cell, section.number(iops, f"round {number}"))
        yield cell, number, 0, {**rates, **_latencies(section, cell, number, values)}


def _latencies(section: Section, cell: Cell, number: int, values: Any) -> dict[str, float]:
    """Return mean and largest latency; for a mix, TKperf weights the two largest, so there is no largest value."""
    _, largest, mean = section.parts(values, 3, f"{cell.workload} in round {number}")
    where = f"the latency of {cell.workload} in round {number}"
    latency = {"mean_latency_us": section.number(mean, where)}
    return (
        latency if cell.read_share == _MIX_OF_LATENCY else {**latency, "max_latency_us": section.number(largest, where)}
    )


def _rates(cell: Cell, iops: float) -> dict[str, float]:
    """Return total IOPS and throughput; those of a direction only if there is no other direction."""
    rate = iops * cell.block_size_bytes / MIB
    values = {"iops": iops, "bandwidth_mib_s": rate}
    for name, share in (("read", cell.read_share), ("write", 100 - cell.read_share)):
        if share in (0, 100):
            values |= {f"{name}_iops": iops * share / 100, f"{name}_bandwidth_mib_s": rate * share / 100}
    return values


def _counts(cell: Cell, measured: dict[str, float], runtime_s: float) -> dict[str, int]:
    """Compute I/Os and bytes, which TKperf does not store, from IOPS (or mean latency), run time and mix."""
    iops = measured.get("iops") or 1e6 * cell.threads * cell.queue_depth / measured["mean_latency_us"]
    reads, writes = (round(iops * runtime_s * share / 100) for share in (cell.read_share, 100 - cell.read_share))
    return {"read_ios": reads, "write_ios": writes, "bytes_written": writes * cell.block_size_bytes}


_TESTS: dict[str, tuple[str, str, Callable[[Section, int, int], Iterator[_Row]]]] = {
    "iops": ("iops", "IOPS", _iops),
    "tp": ("throughput", "Throughput", _throughput),
    "lat": ("latency", "Latency", _latency),
    "writesat": ("write-saturation", "Write saturation", _saturation),
}
"""Name of the test, title and reader of its rounds, by element."""
_TRACKED = {
    "iops": {"pattern": "random", "read_share": 0, "block_size_bytes": 4 * _KIB, "metric": "iops"},
    "tp": {"pattern": "sequential", "read_share": 0, "block_size_bytes": 1024 * _KIB, "metric": "bandwidth_mib_s"},
    "lat": {"pattern": "random", "read_share": 0, "block_size_bytes": 4 * _KIB, "metric": "mean_latency_us"},
}


def _facts(section: Section, date: str, threads: int, depth: int) -> dict[str, dict[str, Any]]:
    about = section.about
    drive: dict[str, Any] = {}
    for name, names in _DRIVE_LINES.items():
        if line := re.search(rf"^\s*(?:{names})\s*[:=]\s*(\S.*?)\s*$", about, re.MULTILINE):
            drive[name] = line[1]
    for name, match, factor in (
        ("capacity_bytes", _SIZE.search(about), 10**6),
        ("capacity_bytes", _BYTES.search(about), 1),
    ):
        if match:
            drive[name] = int(match[1]) * factor
    if section.sector_bytes is not None:
        drive["logical_block_bytes"] = section.sector_bytes
    cache = _CACHE.search(about)
    known = {
        "kernel": section.value("kernel", of_file=True),
        "os": section.value("lsb", of_file=True),
        "fio": section.value("fioversion"),
    }
    host = {name: _text(value) for name, value in known.items() if _text(value)}
    if "fio" in host:
        host["fio"] = host["fio"].removeprefix("fio-")
    version = section.value("ioperfversion", of_file=True)
    test = {
        "engine": "fio, libaio",
        "threads": threads,
        "queue depth": depth,
        "write cache": cache[1] if cache else None,
        "TKperf": version,
        "command": section.value("cmdline", of_file=True),
    }
    return {"drive": drive, "host": host, "test": test, "time": {"date": date}}


def _text(value: Any) -> str:
    text = "" if value is None else str(value).strip()
    return "" if text == "n.a." else text.removeprefix("Description:").strip()


def _notes(section: Section) -> Iterator[str]:
    yield "I/Os and bytes are computed from rates and run time; start times of cells are known only to the day."
    if _SIZE.search(section.about):
        yield "The capacity is known only to the megabyte."
