"""fio's job text for a cell."""

from __future__ import annotations

from drivelab.plan.cell import Cell

PERCENTILES = "50:90:99:99.9:99.99:99.999"
_PATTERNS = {"random": ("randread", "randwrite", "randrw"), "sequential": ("read", "write", "rw")}


def active_range(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[int, int]:
    """Offset and length in bytes of each thread's share of the active range, in whole blocks.

    Random threads share the whole range; sequential threads get a stretch each, or they would follow one another
    through the same blocks.
    """
    unit = max(cell.block_size_bytes, logical_block_bytes)
    start = int(cell.range_start * capacity_bytes) // unit * unit
    length = min(int(cell.range_share * capacity_bytes), capacity_bytes - start) // unit * unit
    if cell.pattern == "sequential":
        length = length // cell.threads // unit * unit
    return start, length


def job_text(cell: Cell, device: str, engine: str, capacity_bytes: int, logical_block_bytes: int, seed: int) -> str:
    """A job file for fio ≥ 3.33; one group, so that the JSON has one job whatever the number of threads.

    norandommap: with a map, fio draws each block once a pass and each thread has a map of its own, which is no
    random access any more in a time-based cell longer than a pass. Blocks come from random data that fio
    scrambles for each write (scramble_buffers, the default): neither compressible nor deduplicable. thread: the
    whole of fio is one process, which ends as one. bsrange: fio draws multiples of the smaller size, each as likely
    as any other, at offsets that are multiples of it too.

    Raises ValueError for a composite: a job of fio has one pattern for all its reads and one for all its writes.
    """
    if cell.streams is not None:
        raise ValueError(f"{cell.label} is no job of fio's")
    read, write, mixed = _PATTERNS[cell.pattern]
    start, length = active_range(cell, capacity_bytes, logical_block_bytes)
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
        "offset": start,
        "size": length,
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
        options["offset_increment"] = length
    if cell.runtime_s is not None:
        options["runtime"] = f"{round(cell.runtime_s * 1000)}ms"
    if cell.volume_bytes is not None:
        options["io_size"] = max(cell.volume_bytes // cell.threads, cell.largest_block_bytes)
    else:
        options["time_based"] = 1
    return "[cell]\n" + "".join(f"{key}={value}\n" for key, value in options.items())


def _block_size(cell: Cell) -> dict[str, str | int]:
    if cell.block_size_max_bytes is None:
        return {"bs": cell.block_size_bytes}
    return {"bsrange": f"{cell.block_size_bytes}-{cell.block_size_max_bytes}"}
