"""Choose how many threads issue a replay's requests, and on which CPUs."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np

from drivelab.drives.nvme import can_crash
from drivelab.drives.target import Target
from drivelab.host.machine import Machine
from drivelab.host.placement import Topology, placement_on, topology
from drivelab.replay.engine_records import open_schedule
from drivelab.replay.native import MOST_THREADS, EngineOptions

THREAD_IOPS = 400_000
"""Rate that one thread keeps with margin; benchmarks/replay_rate.py measures it."""
THREAD_DEPTH = 128
"""Requests in flight that one thread keeps busy, if the drive alone sets the rate."""
_BURST = 1000
"""Requests over which the highest rate is taken."""


def issuing(options: EngineOptions, target: Target, schedule: Path) -> EngineOptions:
    """Return the options with threads and CPUs, if neither was chosen."""
    if options.threads is not None:
        return options
    device = None if target.device is None else Path(target.device).name
    wanted = wanted_threads(schedule, options.depth_limit)
    if can_crash(wanted, polled=options.polled, nvme=options.nvme):
        wanted = 1
    return chosen(options, wanted, topology(Machine(), device))


def wanted_threads(schedule: Path, depth_limit: int) -> int:
    """Return the threads that a schedule needs: by its highest rate, or without deadlines by its depth."""
    records = open_schedule(schedule).records[::_BURST]
    if not len(records):
        return 1
    if records["deadline_ns"][-1]:
        shortest_ns = int(np.diff(records["deadline_ns"]).min(initial=2**62))
        return ceil(_BURST * 1e9 / max(shortest_ns, 1) / THREAD_IOPS)
    depth = int(records["depth"].max()) or depth_limit
    return ceil(min(depth, depth_limit) / THREAD_DEPTH)


def chosen(options: EngineOptions, wanted: int, seen: Topology) -> EngineOptions:
    """Return the options for the wanted threads on these CPUs: one CPU stays free, unless it is the only one."""
    threads = max(1, min(wanted, len(seen.cpus) - 1, MOST_THREADS))
    return replace(options, threads=threads, cpus=placement_on(seen).cpus(threads))
