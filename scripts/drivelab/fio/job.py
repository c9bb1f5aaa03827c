"""Write fio's job text for a cell, and refuse cells whose way of submitting I/Os is not supported here."""

from __future__ import annotations

import resource
from collections.abc import Sequence

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.drives.nvme import can_crash
from drivelab.plan.cell import TRIM, Cell
from drivelab.plan.expressible import directions_of, percents, workloads_of
from drivelab.plan.ranges import Part, parts_of

SYNCHRONOUS_ENGINE = "psync"
"""Engine of synchronous cells: the kernel hands a buffered synchronous write of io_uring to a worker thread."""
RING_ENGINE = "io_uring"
COMMAND_ENGINE = "io_uring_cmd"
PERCENTILES = "50:90:99:99.9:99.99:99.999"
COMPRESS_CHUNK_BYTES = 4096
REFILLED_BYTES = 65536
"""Compressing drives process less than this at a time."""
_PATTERNS = {"random": ("randread", "randwrite", "randrw", "randtrim"), "sequential": ("read", "write", "rw", "trim")}


def job_text(
    cell: Cell,
    device: str,
    engine: str,
    capacity_bytes: int,
    logical_block_bytes: int,
    seed: int,
    *,
    file: bool = False,
    direct: bool = True,
    cpus: Sequence[int] = (),
) -> str:
    """Return a job file for fio ≥ 3.33; `device` is a `file` or a block device.

    `cpus` has one CPU for each thread of all workloads; it is empty if the scheduler places them.

    For a cell of NVMe commands, `device` is the namespace's character device.

    Without `direct`, I/O goes through the page cache, for file systems that have no direct I/O.

    All threads are one group, so that the JSON has one job.

    - norandommap: with a map, fio draws each block once per pass, and each thread has its own map. In a time-based cell
      longer than a pass that is not random access.
    - thread: fio is one process, which ends as a whole.
    - bsrange: fio draws multiples of the smaller size with equal probability, at offsets that are multiples of it too.
    - A synchronous write is a write through the page cache with O_SYNC, which is a write and an fsync; its latency
      covers both. In a file it appends.
    - create_serialize=0: each thread opens the block device itself, after it has filled its buffers. Otherwise the main
      thread opens and closes the device long before, and `drivelab.fio.prepared` could not hold fio before it.
    - Each of several workloads is a section. If their directions identify them, one group counts reads and writes;
      otherwise each is its own group.

    Raises UserError for a cell that fio cannot express (drivelab.plan.expressible) or that does not fit on the drive.
    """
    parts = parts_of(cell, capacity_bytes, logical_block_bytes)
    apart = len(parts) > 1 and directions_of(cell) is None
    sections, places = [], list(cpus)
    for number, part in enumerate(parts):
        name = "cell" if number == 0 else "beside" if number == 1 else f"beside-{number}"
        options = _options(part, device, engine, seed) | ({"new_group": 1} if apart and number else {})
        if not file:
            options["create_serialize"] = 0
        if places:
            own, places = places[: part.cell.threads], places[part.cell.threads :]
            options |= {"cpus_allowed": ",".join(map(str, sorted(own))), "cpus_allowed_policy": "split"}
        if not direct:
            options["direct"] = 0
        if cell.synchronous:
            options |= {"direct": 0, "ioengine": SYNCHRONOUS_ENGINE, "sync": "sync"}
            options |= {"file_append": 1, "fallocate": "none"} if file else {}
        sections.append(f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options.items()))
    return "".join(sections)


def _options(part: Part, device: str, engine: str, seed: int) -> dict[str, str | int]:
    cell = part.cell
    read, write, mixed, trim = _PATTERNS[cell.pattern]
    options: dict[str, str | int] = {
        "filename": device,
        "direct": 1,
        "ioengine": engine,
        "thread": 1,
        "numjobs": cell.threads,
        "group_reporting": 1,
        "iodepth": cell.queue_depth,
        "rw": {"read": read, "write": write, TRIM: trim}.get(cell.direction or "", mixed),
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
    options |= _places(part) | _rate(cell) | _content(cell) | _submission(cell)
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
        return {"bssplit": ":".join(f"{entry['block_size_bytes']}/{percent}" for entry, percent in entries)}
    if cell.block_size_max_bytes is None:
        return {"bs": cell.block_size_bytes}
    return {"bsrange": f"{cell.block_size_bytes}-{cell.block_size_max_bytes}"}


def _places(part: Part) -> dict[str, str | int]:
    """Return the options for the places of random I/Os.

    With a centre of 0, Zipf's law prefers the same blocks in all threads. In strided mode a thread moves to the next
    segment after `zonesize` bytes, which is after each I/O.
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
    """Return each thread's limits for reads and writes in bytes per second.

    Fio's IOPS limit is a whole number. I/Os are due at equal intervals (rate_process=linear); a late thread catches up.
    """
    if cell.rate_iops is None:
        return {}
    thread_rate = cell.rate_iops * cell.block_size_bytes / cell.threads
    if cell.operation == TRIM:  # fio's limits of reads and writes are left out
        return {"rate": f",,{max(int(thread_rate + 1e-6), 1)}"}
    limits = [thread_rate * share / 100 for share in (cell.read_share, 100 - cell.read_share) if share]
    return {"rate": ",".join(f"{max(int(limit + 1e-6), 1)}" for limit in limits)}


def _submission(cell: Cell) -> dict[str, str | int]:
    """Return the options for how I/Os are submitted and completed.

    A batch is not waited for: a thread submits up to `batch` I/Os and collects what has completed, at least one.
    Linux opens no character device with O_DIRECT, and no page cache is before one.
    """
    options: dict[str, str | int] = {}
    if cell.registered:
        options |= {"registerfiles": 1, "fixedbufs": 1}
    if cell.batch is not None:
        options |= {"iodepth_batch": cell.batch, "iodepth_batch_complete_min": 1,
                    "iodepth_batch_complete_max": cell.batch}  # fmt: skip
    if cell.polled:
        options["hipri"] = 1
    if cell.nvme:
        options |= {"ioengine": COMMAND_ENGINE, "cmd_type": "nvme", "direct": 0}
    return options


def _content(cell: Cell) -> dict[str, str | int]:
    """Return the options for written content: random data, with no two equal pages.

    Blocks smaller than REFILLED_BYTES are refilled for each write. For larger blocks fio cycles through as many buffers
    as are in flight and marks every 512 B with place and time (scramble_buffers). Refilling them would measure the
    generation of random data, about 4 GB/s per core, instead of a fast drive. A compressor with a window of 32 KiB
    saves less than 1 % of the former and about 5 % of the latter. A cell with `reuse_buffers` treats blocks of all
    sizes as larger ones; the marks keep any two pages different.
    With an entropy, buffers are refilled: each page of 4 KiB, or smaller block, has random data first, then zeros.
    """
    if cell.direction in ("read", TRIM):
        return {}
    if cell.entropy is None:
        refills = cell.block_size_bytes < REFILLED_BYTES and not cell.reuse_buffers
        return {"refill_buffers": 1} if refills else {}
    return {
        "refill_buffers": 1,
        "buffer_compress_percentage": round(100 * (1 - cell.entropy)),
        "buffer_compress_chunk": min(cell.block_size_bytes, COMPRESS_CHUNK_BYTES),
    }


def refuse_submission(cell: Cell, engine: str, label: str, *, polls: bool, may_lock: bool | None = None) -> None:
    """Raise UserError if I/Os cannot be submitted as the cell asks.

    `polls` says whether the drive has poll queues, `may_lock` whether this process may lock any amount of memory (by
    default whether it has the capability).
    """
    if may_lock is None:
        may_lock = programs.has(programs.IPC_LOCK)
    if (cell.registered or cell.polled or cell.nvme) and engine != RING_ENGINE:
        raise UserError(
            f"{label}: cell {cell.label} needs {RING_ENGINE}, which the kernel or a container forbids here. Allow it "
            "(sysctl kernel.io_uring_disabled=0), or remove 'registered', 'polled' and 'nvme' from the protocol."
        )
    if cell.polled and not polls:
        raise UserError(
            f"{label} has no poll queues, but cell {cell.label} polls. Load the nvme module with poll_queues above 0, "
            "or remove 'polled' from the protocol."
        )
    if can_crash(polled=bool(cell.polled), nvme=bool(cell.nvme)):
        raise UserError(
            f"{label}: cell {cell.label} polls for NVMe commands, which can crash this kernel. Use Linux 6.5 or "
            "newer, or remove 'polled' or 'nvme' from the protocol."
        )
    limit_bytes = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if cell.registered and not may_lock and resource.RLIM_INFINITY != limit_bytes < (need := _locked_bytes(cell)):
        raise UserError(
            f"{label}: cell {cell.label} registers buffers of up to {format_amount(need)}, but this user may lock "
            f"{format_amount(limit_bytes)} of memory. Raise the limit (ulimit -l), run as root, or remove 'registered'."
        )


def _locked_bytes(cell: Cell) -> int:
    """Return the size of the buffers of a cell and of the next one, which may be prepared meanwhile."""
    return 2 * sum(part.threads * part.queue_depth * part.largest_block_bytes for part in workloads_of(cell))
