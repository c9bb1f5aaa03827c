"""How many threads issue, and where."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drivelab.core.errors import UserError
from drivelab.host.placement import Topology
from drivelab.replay import native
from drivelab.replay.engine_records import SCHEDULE_RECORD, ScheduleWriter
from drivelab.replay.native import EngineOptions, chosen, wanted_threads


def schedule(folder: Path, gap_ns: float, depth: int = 0, burst_gap_ns: float | None = None) -> Path:
    """Write 20,000 requests; in the middle, 2,000 follow each other after `burst_gap_ns`."""
    gaps_ns = np.full(20_000, gap_ns)
    if burst_gap_ns is not None:
        gaps_ns[9_000:11_000] = burst_gap_ns
    records = np.zeros(20_000, SCHEDULE_RECORD)
    records["deadline_ns"], records["depth"] = np.cumsum(gaps_ns) - gaps_ns[0], depth
    with ScheduleWriter(folder / "s", 1 << 20, 4096) as writer:
        writer.write(records)
    return folder / "s"


@pytest.mark.parametrize(
    ("gap_ns", "burst_gap_ns", "threads"),
    [(1e6, None, 1), (2500, None, 1), (2000, None, 2), (500, None, 5), (1e6, 1000, 3)],
)
def test_threads_follow_the_highest_rate(
    tmp_path: Path, gap_ns: float, burst_gap_ns: float | None, threads: int
) -> None:
    assert wanted_threads(schedule(tmp_path, gap_ns, burst_gap_ns=burst_gap_ns), 4096) == threads


@pytest.mark.parametrize(
    ("depth", "limit", "threads"), [(1, 4096, 1), (128, 4096, 1), (512, 4096, 4), (512, 256, 2), (0, 64, 1)]
)
def test_threads_follow_the_depth_without_deadlines(tmp_path: Path, depth: int, limit: int, threads: int) -> None:
    assert wanted_threads(schedule(tmp_path, 0, depth), limit) == threads


def seen(count: int, interrupts: frozenset[int] = frozenset()) -> Topology:
    return Topology(tuple(range(count)), {cpu: cpu for cpu in range(count)}, frozenset(), interrupts)


@pytest.mark.parametrize(
    ("wanted", "topology", "threads", "cpus"),
    [
        (3, seen(1), 1, ()),
        (3, seen(2), 1, ()),
        (1, seen(8), 1, (0,)),
        (3, seen(8, frozenset({0, 2})), 3, (1, 3, 4)),
        (99, seen(4), 3, (0, 1, 2)),
    ],
)
def test_a_cpu_stays_free(
    wanted: int, topology: Topology, threads: int, cpus: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: len(topology.cpus))
    options = chosen(EngineOptions(), wanted, topology)
    assert (options.threads, options.cpus) == (threads, cpus)


def test_named_cpus_give_the_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    options = EngineOptions(cpus=(2, 3))
    assert options.threads == 2
    assert native.issuing(options, SimpleNamespace(device=None), tmp_path) is options  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"threads .1. and CPUs .2. differ; name one CPU a thread"):
        EngineOptions(threads=1, cpus=(2, 3))


def test_nothing_polls_for_commands_of_an_older_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(release="6.4.0"))
    with pytest.raises(UserError, match=r"^polling for NVMe commands can crash this kernel; use Linux 6\.5 or newer"):
        native.run_engine("/dev/x", "x", schedule(tmp_path, 0), tmp_path, EngineOptions(nvme=True, polled=True))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
