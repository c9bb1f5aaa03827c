"""The XML file of TKperf: its IOPS, throughput, latency and write saturation tests of an SSD.

Below a root that is named after the test, JSON in the text of elements (`toXml` in TKperf's perfTest/DeviceTests.py
and PerfTest.py): `testdate`, `devinfo` (lines of hdparm or its like), `kernel`, `lsb`, `ioperfversion`, and for each
test an element `iops`, `tp`, `lat` or `writesat` with `fioversion`, `numjobs`, `iodepth`, `runtime`, `roundmat` and
the steady state: `stdyrounds` (from 0), `stdyvalues`, `stdyavg`, `reachstdystate`. `roundmat` is by round, mix and
block size for IOPS (I/Os a second) and latency (least, largest, mean in us); by block size, direction and round for
throughput (KiB/s); for write saturation a list of IOPS and one of latencies, a value a minute.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.imported.tables import MIB, WINDOW, Recording, cell_row
from drivelab.imported.tkperf_section import Section
from drivelab.plan.cell import Cell
from drivelab.tables.steps import STEADY_STATE

KIND = "tkperf"
RUNTIME_S = 60
"""Of every cell, before TKperf had an option for it."""
_AVERAGE_TOLERANCE = 1e-3
"""Relative; whole numbers are averaged, and the average may be rounded."""
_KIB = 1024
_IOPS_MIXES, _IOPS_BLOCKS = (100, 95, 65, 50, 35, 5, 0), (1024 * _KIB, 128 * _KIB, 64 * _KIB, 32 * _KIB, 16 * _KIB,
                                                         8 * _KIB, 4 * _KIB, 512)  # fmt: skip
_LATENCY_MIXES, _LATENCY_BLOCKS = (100, 65, 0), (8 * _KIB, 4 * _KIB, 512)
_THROUGHPUT_BLOCKS = (1024 * _KIB, 64 * _KIB, 8 * _KIB, 4 * _KIB, 512)
_MIX_OF_LATENCY = 65
_WITHOUT_512 = (len(_IOPS_BLOCKS) - 1, len(_LATENCY_BLOCKS) - 1)
_DRIVE_LINES = {
    "model": "Model Number|mn|Product|E: ID_MODEL",
    "serial": "Serial Number|sn|E: ID_SERIAL_SHORT",
    "firmware": "Firmware Revision|fr|Revision Level",
}
"""Names in the lines of hdparm, of nvme for NVMe, of sginfo for SAS, of udevadm else."""
_BYTES = re.compile(r"Device [Ss]ize(?: \(bytes\))?: (\d+)")
_SIZE = re.compile(r"device size with M = 1000\*1000:\s*(\d+) MBytes")
_CACHE = re.compile(r"write-caching\s*=\s*\d+\s*\((\w+)\)")


def read(path: Path, drive: str, date: str | None = None) -> list[Recording]:
    """The tests in a file, each as a recording of `drive`. `date` (ISO 8601) is for a file without a test date.

    Raises UserError for a file that is none of TKperf's, for tests of hard disks (their rounds are places, not
    repeats), and for values that are missing, zero or no numbers.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); name TKperf's XML file") from None
    except ElementTree.ParseError as error:
        raise UserError(f"{path}: is no XML ({error}); name TKperf's XML file") from None
    found = [_recording(Section(path, root, one), drive, date) for one in root if one.tag in _TESTS]
    if not found:
        raise UserError(f"{path}: has none of the elements {', '.join(_TESTS)}; name TKperf's XML file")
    if len({one.test for one in found}) != len(found):
        raise UserError(f"{path}: has the same test twice; name a file of one run of TKperf")
    return found


def _recording(section: Section, drive: str, date: str | None) -> Recording:
    test, title, rows = _TESTS[section.element.tag]
    told = section.value("testdate", date, of_file=True)
    try:
        started = datetime.fromisoformat(str(told)).replace(tzinfo=UTC)
    except ValueError:
        raise UserError(f"{section.path}: does not say when the test ran; give --date YYYY-MM-DD") from None
    is_loop = section.element.tag != "writesat"
    if is_loop and section.element.find("stdyrounds") is None:
        raise section.error("has no <stdyrounds>, as a test of a hard disk, whose rounds are places and no repeats")
    runtime_s = float(section.whole("runtime", RUNTIME_S))
    threads, depth, cells = section.whole("numjobs"), section.whole("iodepth"), []
    for count, (cell, number, place, found) in enumerate(rows(section, threads, depth)):
        kind, until = ("loop", STEADY_STATE) if is_loop else ("soak", None)
        timed = {"started": started, "elapsed_s": count * runtime_s, "runtime_s": runtime_s}
        told_of = {**timed, "filled": is_loop, "directory": section.path.name, **_counts(cell, found, runtime_s)}
        cells.append(cell_row(cell, kind=kind, number=number, place=place, until=until, **told_of, **found))
    _check_steady_state(section)
    return Recording(
        drive=drive,
        kind=KIND,
        test=test,
        title=f"{title}, TKperf",
        cells=cells,
        until={**WINDOW, "track": [_TRACKED[section.element.tag]]} if is_loop else None,
        facts=_facts(section, str(told), threads, depth),
        notes=tuple(_notes(section)),
        to_the_day=True,
    )


def _check_steady_state(section: Section) -> None:
    """TKperf's window must be that of its own rounds, its average that of the window; an edited file may say anything.

    TKperf takes the writes of the last but one block size, whatever that is (DeviceTests.py, runRounds).
    """
    average, rounds = section.value("stdyavg"), section.value("stdyrounds", [])
    if not isinstance(rounds, list) or not all(type(one) is int and one >= 0 for one in rounds):
        raise section.error(f"has {rounds!r} in <stdyrounds>, where numbers of rounds from 0 should be")
    if sorted(set(rounds)) != rounds:
        raise section.error(f"has {rounds!r} in <stdyrounds>, which are not rounds that follow each other")
    values = section.parts(section.value("stdyvalues", []) or [average], None, "<stdyvalues>")
    if average is None:
        return
    numbers = [section.number(one, "a value of <stdyvalues>") for one in values]
    mean = math.fsum(numbers) / len(numbers)
    if not math.isclose(section.number(average, "<stdyavg>"), mean, rel_tol=_AVERAGE_TOLERANCE):
        raise section.error(f"has the average {average:g} in <stdyavg>, but its <stdyvalues> have {mean:g}")
    judged, matrix = _JUDGED.get(section.element.tag), section.value("roundmat")
    if judged is None or not rounds:
        return
    for number, value in zip(section.parts(rounds, len(numbers), "values in <stdyrounds>"), numbers, strict=True):
        try:
            held = float(judged(matrix, number))
        except (IndexError, TypeError):
            raise section.error(f"has no round {number!r} in <roundmat>, but in <stdyrounds>") from None
        if not math.isclose(value, held, rel_tol=_AVERAGE_TOLERANCE):
            raise section.error(f"has {value:g} in <stdyvalues> for round {number}, but its <roundmat> has {held:g}")


_Row = tuple[Cell, int, int, dict[str, float]]


def _by_mix(
    section: Section, mixes: tuple[int, ...], known: tuple[int, ...], threads: int, depth: int
) -> Iterator[tuple[Cell, int, int, Any]]:
    """Cell, round, place and value of a matrix by round, mix and block size."""
    rounds = section.parts(section.value("roundmat"), None, "<roundmat>")
    by_round = [section.parts(one, len(mixes), f"mixes in round {number}") for number, one in enumerate(rounds, 1)]
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
    lists = [section.parts(one, 2, "directions") for one in by_block]
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
        found = _rates(cell, section.number(iops, f"round {number}"))
        yield cell, number, 0, {**found, **_latencies(section, cell, number, values)}


def _latencies(section: Section, cell: Cell, number: int, values: Any) -> dict[str, float]:
    """Mean and largest. Of a mix TKperf weighs the two largest by their shares, which is no largest value."""
    _, largest, mean = section.parts(values, 3, f"{cell.workload} in round {number}")
    where = f"the latency of {cell.workload} in round {number}"
    found = {"mean_latency_us": section.number(mean, where)}
    return found if cell.read_share == _MIX_OF_LATENCY else {**found, "max_latency_us": section.number(largest, where)}


def _rates(cell: Cell, iops: float) -> dict[str, float]:
    """IOPS and throughput in all; of each direction only where it is the only one."""
    rate = iops * cell.block_size_bytes / MIB
    found = {"iops": iops, "bandwidth_mib_s": rate}
    for name, share in (("read", cell.read_share), ("write", 100 - cell.read_share)):
        if share in (0, 100):
            found |= {f"{name}_iops": iops * share / 100, f"{name}_bandwidth_mib_s": rate * share / 100}
    return found


def _counts(cell: Cell, found: dict[str, float], runtime_s: float) -> dict[str, int]:
    """I/Os and bytes, which TKperf does not keep, from IOPS, run time and mix; without IOPS, from the mean latency."""
    iops = found.get("iops") or 1e6 * cell.threads * cell.queue_depth / found["mean_latency_us"]
    reads, writes = (round(iops * runtime_s * share / 100) for share in (cell.read_share, 100 - cell.read_share))
    return {"read_ios": reads, "write_ios": writes, "bytes_written": writes * cell.block_size_bytes}


_TESTS: dict[str, tuple[str, str, Callable[[Section, int, int], Iterator[_Row]]]] = {
    "iops": ("iops", "IOPS", _iops),
    "tp": ("throughput", "Throughput", _throughput),
    "lat": ("latency", "Latency", _latency),
    "writesat": ("write-saturation", "Write saturation", _saturation),
}
"""By element: name of the test, title, and what reads its rounds."""
_TRACKED = {
    "iops": {"pattern": "random", "read_share": 0, "block_size_bytes": 4 * _KIB, "metric": "iops"},
    "tp": {"pattern": "sequential", "read_share": 0, "block_size_bytes": 1024 * _KIB, "metric": "bandwidth_mib_s"},
    "lat": {"pattern": "random", "read_share": 0, "block_size_bytes": 4 * _KIB, "metric": "mean_latency_us"},
}


_JUDGED: dict[str, Callable[[Any, int], Any]] = {
    "iops": lambda matrix, number: matrix[number][-1][-2],
    "tp": lambda matrix, number: matrix[0][1][number],
    "lat": lambda matrix, number: matrix[number][-1][-2][2],
}
"""What TKperf judges the steady state of a round by."""


def _facts(section: Section, date: str, threads: int, depth: int) -> dict[str, dict[str, Any]]:
    about = section.about
    drive: dict[str, Any] = {}
    for name, words in _DRIVE_LINES.items():
        if line := re.search(rf"^\s*(?:{words})\s*[:=]\s*(\S.*?)\s*$", about, re.MULTILINE):
            drive[name] = line[1]
    for name, found, factor in (
        ("capacity_bytes", _SIZE.search(about), 10**6),
        ("capacity_bytes", _BYTES.search(about), 1),
    ):
        if found:
            drive[name] = int(found[1]) * factor
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
    """How TKperf judged the steady state, to be held against the window that is found here."""
    rounds: Sequence[Any] = section.value("stdyrounds", [])
    average = section.value("stdyavg")
    if rounds:
        reached = "reached" if section.value("reachstdystate", False) else "not reached"
        yield f"TKperf: steady state {reached}, rounds {rounds[0] + 1} to {rounds[-1] + 1}, average {average}."
        if section.element.tag in ("iops", "lat") and len(section.value("roundmat")[0][-1]) in _WITHOUT_512:
            yield "TKperf judged it by writes of 8 KiB, the last but one block size of a drive of 4096-byte sectors."
    yield "I/Os and bytes are computed from rates and run time; the beginning of cells is known to the day only."
    if _SIZE.search(section.about):
        yield "The capacity is known to the megabyte only."
