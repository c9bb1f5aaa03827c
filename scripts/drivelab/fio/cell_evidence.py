"""Write fio's output files, json+ documents and one-second logs, for I/O that fio did not do.

Latencies are counted in fio's bins (stat.h: 64 linear bins for each power of two of nanoseconds), so that histograms
of simulated and real I/O can be merged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drivelab.fio.early_end import INTERRUPTED, OPERATIONS, Completion, Cut, StopRule, rows_until

VERSION = "virtual-clock"
EPOCH_MS = round(datetime(2000, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""Calendar time of virtual time 0."""
PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999)
"""fio's default list and 99.999."""
_SUB_BITS = 6
_BINS = 29 << _SUB_BITS
_CHUNK = 65536
_DIRECTIONS = {name: OPERATIONS.index(name) for name in ("read", "write", "trim")}

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def bin_indices(latency_ns: Integers) -> Integers:
    """Return fio's bin for each latency (stat.c, plat_val_to_idx)."""
    msb = np.frexp(latency_ns.astype(np.float64))[1] - 1
    error_bits = np.maximum(msb - _SUB_BITS, 0)
    mantissa = (latency_ns >> error_bits) & ((1 << _SUB_BITS) - 1)
    index = np.where(msb <= _SUB_BITS, latency_ns, ((error_bits + 1) << _SUB_BITS) + mantissa)
    return np.minimum(index, _BINS - 1).astype(np.int64)


def bin_value(index: int) -> int:
    """Return the latency in nanoseconds that fio prints for a bin: its middle (stat.c, plat_idx_to_val)."""
    if index < 2 << _SUB_BITS:
        return index
    error_bits = (index >> _SUB_BITS) - 1
    return (1 << (error_bits + _SUB_BITS)) + ((2 * (index % (1 << _SUB_BITS)) + 1) << error_bits >> 1)


class _Direction:
    """Totals of reads, writes or trims so far."""

    def __init__(self) -> None:
        self.ios = self.bytes = self.sum_ns = self.least_ns = self.most_ns = 0
        self.sum_of_squares = 0.0
        self.bins = np.zeros(_BINS, dtype=np.int64)

    def add(self, latency_ns: Integers, lengths: Integers) -> None:
        if not len(latency_ns):
            return
        least = int(latency_ns.min())
        self.least_ns = min(self.least_ns, least) if self.ios else least
        self.most_ns = max(self.most_ns, int(latency_ns.max()))
        self.ios += len(latency_ns)
        self.bytes += int(lengths.sum())
        self.sum_ns += int(latency_ns.sum())
        self.sum_of_squares += float(np.square(latency_ns.astype(np.float64)).sum())
        self.bins += np.bincount(bin_indices(latency_ns), minlength=_BINS)

    def document(self, runtime_ms: int) -> dict[str, Any]:
        latency = self._latency()
        bandwidth = self.bytes * 1000 // runtime_ms
        return {
            "io_bytes": self.bytes,
            "io_kbytes": self.bytes >> 10,
            "bw_bytes": bandwidth,
            "bw": bandwidth >> 10,
            "iops": round(1000 * self.ios / runtime_ms, 6),
            "runtime": runtime_ms if self.ios else 0,
            "total_ios": self.ios,
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
            "clat_ns": latency,
            "lat_ns": {**latency, **self._distribution()} if self.ios else latency,
        }

    def _latency(self) -> dict[str, Any]:
        mean = self.sum_ns / self.ios if self.ios else 0.0
        variance = self.sum_of_squares / self.ios - mean * mean if self.ios else 0.0
        return {
            "min": self.least_ns,
            "max": self.most_ns,
            "mean": round(mean, 6),
            "stddev": round(math.sqrt(max(variance, 0.0)), 6),
            "N": self.ios,
        }

    def _distribution(self) -> dict[str, Any]:
        cumulative = np.cumsum(self.bins)
        ranks = [p / 100 * self.ios * (1 - 1e-12) for p in PERCENTILES]  # 99.9 % of 5000 is 4995, not just above
        at = [int(np.searchsorted(cumulative, rank)) for rank in ranks]
        return {
            "percentile": {f"{p:.6f}": bin_value(index) for p, index in zip(PERCENTILES, at, strict=True)},
            "bins": {str(bin_value(int(index))): int(self.bins[index]) for index in np.flatnonzero(self.bins)},
        }


def write_evidence(
    directory: Path,
    completions: Iterable[Completion],
    *,
    start_us: float,
    threads: Sequence[int],
    job: str,
    slice_s: float | None = None,
    until_s: float | None = None,
    until: StopRule | None = None,
    least_s: float = 0.0,
) -> float:
    """Consume completions in order and write the files of a fio run; return the time of the last completion.

    `job` is the job text, `threads` the number of each group of it; several groups are the workloads whose operations
    `Completion` numbers separately. With `slice_s`, cumulative documents precede the last one, one for each whole slice
    before `until_s`. With `until`, which requires slices, the run ends with the slice at which the stop rule applies;
    then `completions` must be a generator that ends when True is sent to it. The run lasts at least `least_s`: with a
    rate limit, the last I/O may be long before the end.
    """
    cut = Cut(until) if until is not None else None
    chunks = _chunks(completions)
    if cut is not None:
        assert slice_s is not None
        assert isinstance(completions, Generator)
        slices = rows_until(completions, start_us, 1e6 * slice_s, cut, _CHUNK)
        chunks = (np.array(rows, dtype=np.float64) for rows in slices)
    groups = [{name: _Direction() for name in _DIRECTIONS} for _ in threads]
    seconds = _Seconds()
    documents: list[str] = []
    end_us = start_us
    slice_us = math.inf if slice_s is None else 1e6 * slice_s
    last_boundary_us = math.inf if until_s is None else 1e6 * until_s - 1

    def add_document(elapsed_us: float) -> dict[str, Any]:
        timestamp_ms = EPOCH_MS + round((start_us + elapsed_us) / 1000)
        body = _document(groups, timestamp_ms, elapsed_us, threads, job)
        documents.append(json.dumps(body, indent=2) + "\n")
        return body

    boundary_us = slice_us
    for chunk in chunks:
        elapsed_us = chunk[:, 0] - start_us
        begin = 0
        while boundary_us < min(elapsed_us[-1], last_boundary_us):
            end = int(np.searchsorted(elapsed_us, boundary_us, side="right"))
            _count(groups, chunk[begin:end])
            body = add_document(boundary_us)
            begin, boundary_us = end, boundary_us + slice_us
            if cut is not None:
                cut.apply(body)
                if cut.reached:
                    boundary_us = math.inf
        _count(groups, chunk[begin:])
        seconds.add(elapsed_us, chunk)
        end_us = float(chunk[-1, 0])
    if cut is None or not cut.reached:
        end_us = max(end_us, start_us + 1e6 * least_s)
    while boundary_us < min(end_us - start_us, last_boundary_us):
        add_document(boundary_us)
        boundary_us += slice_us
    add_document(end_us - start_us)
    (directory / "job.fio").write_text(job)
    (directory / "fio.json").write_text("".join(documents))
    (directory / "stdout").write_text("")
    (directory / "stderr").write_text("")
    for name, text in seconds.logs((end_us - start_us) / 1e6):
        (directory / f"series_{name}.1.log").write_text(text)
    early = cut is not None and cut.note(directory)
    (directory / "exit_code").write_text(f"{INTERRUPTED if early else 0}\n")
    return end_us


def _chunks(completions: Iterable[Completion]) -> Iterator[Floats]:
    """Convert completions to arrays of shape (n, 4), with columns as in `Completion`."""
    iterator = iter(completions)
    while chunk := list(islice(iterator, _CHUNK)):
        yield np.array(chunk, dtype=np.float64)


def _latency_ns(rows: Floats) -> Integers:
    return np.rint(1000 * (rows[:, 0] - rows[:, 1])).astype(np.int64)


def _count(groups: Sequence[dict[str, _Direction]], rows: Floats) -> None:
    latency_ns = _latency_ns(rows)
    lengths = rows[:, 3].astype(np.int64)
    operations = rows[:, 2]
    for number, directions in enumerate(groups):
        for name, place in _DIRECTIONS.items():
            chosen = operations == len(OPERATIONS) * number + place
            directions[name].add(latency_ns[chosen], lengths[chosen])


def _document(
    groups: Sequence[dict[str, _Direction]],
    timestamp_ms: int,
    elapsed_us: float,
    threads: Sequence[int],
    job: str,
) -> dict[str, Any]:
    runtime_ms = max(round(elapsed_us / 1000), 1)
    sections = [section.splitlines() for section in job.removeprefix("[").split("\n[")]
    return {
        "fio version": VERSION,
        "timestamp": timestamp_ms // 1000,
        "timestamp_ms": timestamp_ms,
        "jobs": [
            {
                "jobname": name.strip("]"),
                "error": 0,
                "elapsed": -(-runtime_ms // 1000),
                "job options": dict(line.partition("=")[::2] for line in lines),
                **{
                    direction: totals.document(runtime_ms)
                    for direction, totals in directions.items()
                    if totals.ios or direction != "trim"
                },
                "job_runtime": runtime_ms * number,
                "usr_cpu": 0.0,
                "sys_cpu": 0.0,
            }
            for directions, number, (name, *lines) in zip(groups, threads, sections, strict=False)
        ],
    }


class _Seconds:
    """I/Os, bytes and latency by second and direction."""

    def __init__(self) -> None:
        self._sums = np.zeros((0, 2, 3))
        """second, direction, (I/Os, bytes, sum of latencies in ns)"""

    def add(self, elapsed_us: Floats, rows: Floats) -> None:
        operations = rows[:, 2] % len(OPERATIONS)
        known = operations < 2  # trims are not reported, as in fio's logs read by drivelab.fio.series
        elapsed_us, rows, operations = elapsed_us[known], rows[known], operations[known]
        if not len(rows):
            return
        second = (elapsed_us // 1e6).astype(np.int64)
        missing = int(second[-1]) + 1 - len(self._sums)
        if missing > 0:
            self._sums = np.concatenate([self._sums, np.zeros((missing, 2, 3))])
        index = 2 * second + (operations == 0)
        for column, weights in enumerate((None, rows[:, 3], _latency_ns(rows).astype(np.float64))):
            self._sums[:, :, column] += np.bincount(index, weights, minlength=2 * len(self._sums)).reshape(-1, 2)

    def logs(self, elapsed_s: float) -> Iterator[tuple[str, str]]:
        """Yield name and text of each log; whole seconds only, because a partial second would look like a drop.

        A run shorter than one second has one line.
        """
        whole = max(int(elapsed_s), 1)
        sums = self._sums[:whole]
        length_s = min(elapsed_s, 1.0) or 1.0
        lines: dict[str, list[str]] = {"bw": [], "iops": [], "lat": []}
        for second, row in enumerate(sums):
            time_ms = round(1000 * (second + length_s))
            for direction, (ios, size, latency) in enumerate(row):
                if not sums[:, direction, 0].any():
                    continue
                values = {"bw": size / 1024 / length_s, "iops": ios / length_s}
                if ios:
                    values["lat"] = latency / ios
                for name, value in values.items():
                    lines[name].append(f"{time_ms}, {round(value)}, {direction}, 0, 0\n")
        for name, rows in lines.items():
            yield name, "".join(rows)
