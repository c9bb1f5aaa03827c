"""fio's job text for a cell."""

from __future__ import annotations

from drivelab.fio.expressible import percents
from drivelab.fio.ranges import Part, parts_of
from drivelab.plan.cell import Cell

PERCENTILES = "50:90:99:99.9:99.99:99.999"
COMPRESS_CHUNK_BYTES = 4096
REFILLED_BYTES = 65536
"""Drives that compress look at less than this at a time."""
_PATTERNS = {"random": ("randread", "randwrite", "randrw"), "sequential": ("read", "write", "rw")}


def job_text(cell: Cell, device: str, engine: str, capacity_bytes: int, logical_block_bytes: int, seed: int) -> str:
    """A job file for fio ≥ 3.33; one group, so that the JSON has one job whatever the number of threads.

    norandommap: with a map, fio draws each block once a pass and each thread has a map of its own, which is no
    random access any more in a time-based cell longer than a pass. thread: the whole of fio is one process, which ends
    as one. bsrange: fio draws multiples of the smaller size, each as likely
    as any other, at offsets that are multiples of it too. Two workloads are two sections; their group counts the reads
    of the one and the writes of the other.

    Raises UserError for a cell that fio cannot be asked for (drivelab.fio.expressible) or that has no room on the
    drive, ValueError for a composite: a job of fio has one pattern for all its reads and one for all its writes.
    """
    if cell.streams is not None:
        raise ValueError(f"{cell.label} is no job of fio's")
    parts = parts_of(cell, capacity_bytes, logical_block_bytes)
    sections = zip(("cell", "beside"), parts, strict=False)
    return "".join(
        f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in _options(part, device, engine, seed).items())
        for name, part in sections
    )


def _options(part: Part, device: str, engine: str, seed: int) -> dict[str, str | int]:
    cell = part.cell
    read, write, mixed = _PATTERNS[cell.pattern]
    options: dict[str, str | int] = {
        "filename": device,
        "direct": 1,
        "ioengine": engine,
        "thread": 1,
        "numjobs": cell.threads,
        "group_reporting": 1,
        "iodepth": cell.queue_depth,
        "rw": {100: read, 0: write}.get(cell.read_share, mixed),
        **_block_size(cell),
        "offset": part.start_bytes,
        "size": part.length_bytes,
        "randseed": seed,
        "norandommap": 1,
        "random_generator": "tausworthe64",
        "lat_percentiles": 1,
        "percentile_list": PERCENTILES,
        "write_bw_log": "series",
        "write_iops_log": "series",
        "write_lat_log": "series",
        "log_avg_msec": 1000,
    }
    if 0 < cell.read_share < 100:
        options["rwmixread"] = cell.read_share
    if cell.pattern == "sequential" and cell.threads > 1:
        options["offset_increment"] = part.length_bytes
    options |= _places(part) | _rate(cell) | _content(cell)
    if cell.runtime_s is not None:
        options["runtime"] = f"{round(cell.runtime_s * 1000)}ms"
    if cell.volume_bytes is not None:
        options["io_size"] = max(cell.volume_bytes // cell.threads, cell.largest_block_bytes)
    else:
        options["time_based"] = 1
    return options


def _block_size(cell: Cell) -> dict[str, str | int]:
    if cell.block_sizes is not None:
        entries = zip(cell.block_sizes, percents(cell.block_sizes, "share"), strict=True)
        return {"bssplit": ":".join(f"{one['block_size_bytes']}/{percent}" for one, percent in entries)}
    if cell.block_size_max_bytes is None:
        return {"bs": cell.block_size_bytes}
    return {"bsrange": f"{cell.block_size_bytes}-{cell.block_size_max_bytes}"}


def _places(part: Part) -> dict[str, str | int]:
    """Where random I/Os go.

    A centre of 0 makes the blocks that Zipf's law prefers the same for all threads. In strided mode a thread goes on
    to the next segment once it has transferred `zonesize` bytes, which is after each I/O.
    """
    cell = part.cell
    options: dict[str, str | int] = {}
    if cell.pattern == "random" and cell.alignment_bytes is not None:
        options["blockalign"] = cell.alignment_bytes
    if cell.zones is not None:
        zones = zip(percents(cell.zones, "share"), percents(cell.zones, "range_share"), strict=True)
        options["random_distribution"] = "zoned:" + ":".join(f"{share}/{size}" for share, size in zones)
    if cell.zipf is not None:
        options["random_distribution"] = f"zipf:{cell.zipf:g}:0"
    if part.segments is not None:
        options["zonemode"] = "strided"
        options["zonesize"] = cell.block_size_bytes
        options["zonerange"] = part.segments.length_bytes
        options["zoneskip"] = part.segments.distance_bytes - part.segments.length_bytes
    return options


def _rate(cell: Cell) -> dict[str, str | int]:
    """Each thread's limit for reads and for writes, in bytes a second: fio's own limit of I/Os is a whole number.

    I/Os become due at equal distances (rate_process=linear); a thread that is behind catches up.
    """
    if cell.rate_iops is None:
        return {}
    each = cell.rate_iops * cell.block_size_bytes / cell.threads
    limits = [each * share / 100 for share in (cell.read_share, 100 - cell.read_share) if share]
    return {"rate": ",".join(f"{max(int(limit + 1e-6), 1)}" for limit in limits)}


def _content(cell: Cell) -> dict[str, str | int]:
    """What is written: random data, no page like another.

    Blocks smaller than REFILLED_BYTES are filled anew for each write. Of larger ones fio writes as many as are in
    flight in turn and marks every 512 B of them with place and time (its scramble_buffers): random data made at the
    rate of a fast drive, about 4 GB/s for a core, would be what is measured. A compressor with a window of 32 KiB takes
    less than 1 % off the former and about 5 % off the latter.
    With an entropy, buffers are filled anew: in each page of 4 KiB, or smaller block, random data first, then zeros.
    """
    if cell.read_share == 100:
        return {}
    if cell.entropy is None:
        return {"refill_buffers": 1} if cell.block_size_bytes < REFILLED_BYTES else {}
    return {
        "refill_buffers": 1,
        "buffer_compress_percentage": round(100 * (1 - cell.entropy)),
        "buffer_compress_chunk": min(cell.block_size_bytes, COMPRESS_CHUNK_BYTES),
    }
