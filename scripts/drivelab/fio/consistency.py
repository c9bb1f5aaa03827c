"""Check that redundant numbers of one fio document agree.

fio derives rates from counts and run time (stat.c, show_ddir_status). It adds every latency both to the mean and to a
bin. Genuine output therefore differs by at most rounding and the width of a bin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from drivelab.core.errors import CellFailed
from drivelab.fio.document import MIB, Direction, FioResult, documents, from_document, output_text
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import workloads_of

_BIN_SHARE = 1 / 64
"""Twice the largest distance of a latency from the middle of its bin: bins are 1/64 of an octave wide (stat.h)."""
_LARGEST_BIN_NS = float(1 << 34)
"""End of fio's last bin, 17 s. It also holds all longer latencies, so its middle says nothing about them."""
_PRINTING_S = 0.1
"""fio counts the numbers of a running job within this time, because its threads continue. On a busy host with 200,000
I/Os a second, 2,200 I/Os were in one number and not in the other."""
_OUTSTANDING = 0.1
"""Slack of Little's law: fio counts a thread's time and its I/Os a little apart (ours)."""
_PAUSES = frozenset({"rate", "rate_iops", "thinktime", "flow", "fsync", "fdatasync", "verify"})
"""Options of fio with which a thread waits for something other than a read, a write or a trim."""
_NULL_ENGINE = "null"
_ROUNDING = 1e-3
"""fio prints rates to six decimals or whole bytes, times to whole nanoseconds and milliseconds."""


def contradiction(result: FioResult, cell: Cell) -> str | None:
    """Return the first contradiction in a whole run, in words, or None.

    Also None if a value is not a number or below zero: that is another fault.
    """
    contradictions = (
        text
        for one, workload in _workloads(result, cell)
        for name, direction in _directions(one)
        for text in _in_run(name, direction, workload, _in_one_number(one, workload))
    )
    outstanding = (text for one, workload in _workloads(result, cell) for text in _outstanding(one, workload))
    return next(chain(contradictions, outstanding), None) if all_numbers(result) else None


def contradiction_of_slice(part: FioResult, before: FioResult | None, cell: Cell) -> str | None:
    """Return the first contradiction in a slice between two status documents. `before` is the slice before it."""
    if not all(all_numbers(result) for result in (part, before) if result is not None):
        return None
    earlier_of = [None] * len(part.parts or (part,)) if before is None else before.parts or (before,)
    for (one, workload), old in zip(_workloads(part, cell), earlier_of, strict=True):
        earlier = dict(_directions(old)) if old is not None else {}
        for name, direction in _directions(one):
            iops = max(direction.iops, earlier[name].iops if name in earlier else 0.0)
            text = next(_in_slice(name, direction, workload, _PRINTING_S * iops + cell.total_threads), None)
            if text is not None:
                return text
    return None


def least_below_zero(result: FioResult) -> str | None:
    """Return a direction's smallest latency below zero, in words, or None."""
    below = ((name, part.min_latency_us) for name, part in _directions(result) if part.min_latency_us < 0)
    return next((f"smallest latency of the {name} {least_us:.6g} us" for name, least_us in below), None)


def _in_one_number(result: FioResult, cell: Cell) -> int:
    """Return the I/Os that may be in the bytes only, or in the counts only.

    The last I/O of a thread may be short. fio counts an I/O at submission and its bytes at completion, so it adds the
    bytes of those in flight at the end of `ramp_time` (io_u.c).
    """
    return cell.total_threads * (cell.queue_depth if "ramp_time" in result.options else 1)


def _in_run(name: str, part: Direction, cell: Cell, in_one_number: int) -> Iterator[str]:
    if part.runtime_s > 0:
        yield from _rates(name, part)
    elif part.ios:
        yield f"{part.ios} {name} took no time"
    yield from _sizes(name, part, part.ios, cell, in_one_number)
    if not part.latencies:
        return
    if part.latencies > part.ios:
        yield f"{part.latencies} {name} have a latency, but there are {part.ios}"
    mean_us, least_us, most_us = part.mean_latency_us, part.min_latency_us, part.max_latency_us
    slack_us = _ROUNDING * mean_us
    if math.isfinite(least_us) and mean_us < least_us - slack_us:
        yield f"mean latency of the {name} {mean_us:.6g} us, smallest {least_us:.6g} us"
    if mean_us > most_us + slack_us:
        yield f"mean latency of the {name} {mean_us:.6g} us, largest {most_us:.6g} us"
    if not part.bins:  # a foreign program's JSON may lack them
        return
    yield from _mean_against_bins(name, part, 0)
    lowest_us, highest_us = min(part.bins) / 1000, max(part.bins) / 1000
    if math.isfinite(least_us) and least_us > lowest_us * (1 + _BIN_SHARE) + 0.001:
        yield f"smallest latency of the {name} {least_us:.6g} us, lowest bin {lowest_us:.6g} us"
    if not _beyond_bins(part) and not _close(most_us, highest_us, _BIN_SHARE, 0.001):
        yield f"largest latency of the {name} {most_us:.6g} us, highest bin {highest_us:.6g} us"


def _in_slice(name: str, part: Direction, cell: Cell, uncounted: float) -> Iterator[str]:
    if part.latencies and not part.mean_latency_us > 0:
        yield f"{part.latencies} {name} have a latency of 0"
    yield from _sizes(name, part, part.latencies, cell, uncounted)
    if -part.uncounted > uncounted:
        yield f"a status counts {-part.uncounted} fewer {name} than have a latency"
    if part.latencies and part.bins:
        yield from _mean_against_bins(name, part, uncounted)


def _outstanding(result: FioResult, cell: Cell) -> Iterator[str]:
    """Compare the latencies with the time of the threads: Little's law (Operations Research 9, 1961).

    A thread has at most `queue_depth` I/Os outstanding, and while it neither computes nor pauses, it waits for one.
    """
    parts = [part for _, part in _directions(result) if part.latencies]
    if not parts or not result.thread_time_s > 0:
        return
    latencies_s = math.fsum(part.latencies * part.mean_latency_us for part in parts) / 1e6
    drained_s = cell.threads * cell.queue_depth * max(part.max_latency_us for part in parts) / 1e6
    mean = latencies_s / result.thread_time_s
    told = f"rate x mean latency is {mean:.3g} I/Os outstanding in each thread"
    if latencies_s > (1 + _OUTSTANDING) * cell.queue_depth * result.thread_time_s + drained_s:
        yield f"{told}, but the queue depth is {cell.queue_depth}"
    waited = 1 - (result.user_cpu_pct + result.system_cpu_pct) / 100
    pauses = cell.rate_iops is not None or _PAUSES & result.options.keys()
    if mean < _OUTSTANDING * waited and not pauses and result.options.get("ioengine") != _NULL_ENGINE:
        yield f"{told}, but the threads waited for {waited:.0%} of their time"


def _rates(name: str, part: Direction) -> Iterator[str]:
    iops, mib_s = part.ios / part.runtime_s, part.bytes / MIB / part.runtime_s
    if not _close(part.iops, iops, _ROUNDING, 1e-3):
        yield f"IOPS of the {name} {part.iops:.6g}, but {part.ios} in {part.runtime_s:g} s are {iops:.6g}"
    if not _close(part.bandwidth_mib_s, mib_s, _ROUNDING, 1e-3):
        reported = f"bandwidth of the {name} {part.bandwidth_mib_s:.6g} MiB/s"
        yield f"{reported}, but {part.bytes} bytes in {part.runtime_s:g} s are {mib_s:.6g} MiB/s"


def _sizes(name: str, part: Direction, ios: int, cell: Cell, uncounted: float) -> Iterator[str]:
    """Compare bytes with I/Os. `uncounted` I/Os may be in one number only, and a thread's last I/O may be short."""
    smallest, largest = _block_sizes(cell)
    spare = uncounted * largest
    if not smallest * ios - spare <= part.bytes <= largest * ios + spare:
        sizes = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
        yield f"{ios} {name} of {sizes} bytes, but {part.bytes} bytes"


def _block_sizes(cell: Cell) -> tuple[int, int]:
    sizes = [int(part["block_size_bytes"]) for part in cell.block_sizes or ()] or [cell.block_size_bytes]
    sizes += [int(other["block_size_bytes"]) for other in cell.beside or ()]
    return min(sizes), max(*sizes, cell.largest_block_bytes)


def _mean_against_bins(name: str, part: Direction, uncounted: float) -> Iterator[str]:
    """Compare the mean with the bins; `uncounted` I/Os may be in only one of them."""
    bins_us = math.fsum(latency_ns * count for latency_ns, count in part.bins.items()) / 1000
    bins_us /= sum(part.bins.values())
    spare_us = uncounted * max(part.max_latency_us, max(part.bins) / 1000) / part.latencies
    low, high = bins_us * (1 - _BIN_SHARE) - spare_us - 0.001, bins_us * (1 + _BIN_SHARE) + spare_us + 0.001
    if part.mean_latency_us < low or (part.mean_latency_us > high and not _beyond_bins(part)):
        yield f"mean latency of the {name} {part.mean_latency_us:.6g} us, but {bins_us:.6g} us by the latency bins"


def _beyond_bins(part: Direction) -> bool:
    return part.max_latency_us * 1000 >= _LARGEST_BIN_NS


def _close(reported: float, derived: float, share: float, absolute: float) -> bool:
    return math.isclose(reported, derived, rel_tol=share, abs_tol=absolute)


def _directions(result: FioResult) -> tuple[tuple[str, Direction], ...]:
    return (("reads", result.read), ("writes", result.write), ("trims", result.trim))


def _workloads(result: FioResult, cell: Cell) -> Sequence[tuple[FioResult, Cell]]:
    """Return each workload with its own result; rates of several together need not agree with one run time."""
    return list(zip(result.parts, workloads_of(cell), strict=False)) or [(result, cell)]


def all_numbers(result: FioResult) -> bool:
    """Return whether every number of a result is finite and not negative."""
    for _, part in _directions(result):
        numbers = [part.ios, part.bytes, part.runtime_s, part.iops, part.bandwidth_mib_s, *part.bins]
        numbers += [part.mean_latency_us, part.max_latency_us] if part.latencies else []
        numbers += [part.min_latency_us] if not math.isnan(part.min_latency_us) else []
        if not all(math.isfinite(number) and number >= 0 for number in numbers):
            return False
    return True


_SECTION = re.compile(r"^\[(.*)\]$", re.MULTILINE)
_ROUNDING_S = 1.0


def sections_of_job(directory: Path) -> list[Mapping[str, str]]:
    """Return the options of each job in a folder's job.fio, including `[global]`.

    The result is empty without the file.
    """
    try:
        text = (directory / "job.fio").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    common: dict[str, str] = {}
    jobs: list[Mapping[str, str]] = []
    parts = _SECTION.split(text)
    for section, body in zip(parts[1::2], parts[2::2], strict=True):
        pairs = (line.partition("=") for line in body.splitlines())
        options = {**common, **{name: value for name, equals, value in pairs if equals}}
        if section == "global":
            common = options
        else:
            jobs.append(options)
    return jobs


def foreign_option(result: FioResult, sections: Sequence[Mapping[str, str]]) -> str | None:
    """Return a difference between the options of fio and of the job, or None.

    For a job of several sections fio repeats the options of one section only.
    """
    differences = [
        next((f"fio ran with {name}={value}, but job.fio has {section[name]}" for name, value in result.options.items()
              if _plain(section.get(name, value)) != _plain(value)), None)
        for section in sections
    ]  # fmt: skip
    return differences[0] if differences and all(differences) else None


_BELOW_ZERO = re.compile(r'"(total_ios|io_bytes|runtime|iops|bw|bw_bytes)"\s*:\s*(-[\d.]+)')


def require_own(directory: Path, began_s: float) -> None:
    """Raise CellFailed if fio's output is from another job or before `began_s` (Unix), or has a count below zero.

    Stop rules and the next cells depend on the counts and rates, so a fio that reports such a number ends the cell.
    One fio process writes the whole file, so the first document is enough. drivelab.fio.result reports unreadable
    output.
    """
    text = output_text(directory)
    if negative := _BELOW_ZERO.search(text):
        raise CellFailed(
            f"{directory / 'fio.json'} has {negative[2]} as {negative[1]}, which cannot be negative; check which fio "
            "is installed (fio --version), then run again"
        )
    try:
        document = next(documents(text))
        result = from_document(document)
    except CellFailed:
        return
    sections = sections_of_job(directory)
    difference = foreign_option(result, sections) or _missing_option(result, sections)
    if difference is not None:
        raise CellFailed(f"fio's JSON is from another job: {difference}")
    printed_s = document["timestamp_ms"] / 1000
    if printed_s < began_s - _ROUNDING_S:
        raise CellFailed(
            f"fio's JSON is from another run: fio printed it at {_time(printed_s)}, but started at {_time(began_s)}"
        )


def _missing_option(result: FioResult, sections: Sequence[Mapping[str, str]]) -> str | None:
    """Return an option of a one-section job that fio does not repeat, or None."""
    if len(sections) != 1:
        return None
    return next((f"it does not repeat {name}={value}" for name, value in sections[0].items()
                 if name not in result.options), None)  # fmt: skip


def _plain(value: object) -> str:
    """Remove the escapes before colons in device names of a job."""
    return str(value).replace("\\", "").strip()


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
