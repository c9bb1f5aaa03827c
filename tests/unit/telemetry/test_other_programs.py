"""What other programs do is measured, and their names are said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from storage_places import Place

from drivelab.telemetry import other_programs
from drivelab.telemetry.other_programs import Sample, activity, disturbances, take

KEY = ("4711", "100", "dd")
CPU = {"cpu_total_s": 1000.0, "cpu_busy_s": 50.0, "cpu_steal_s": 0.0}
FIRST = Sample(100.0, CPU, {KEY: 5.0}, {"sda": (1000, 1 << 30)})
QUIET = replace(FIRST, time_s=101.0, cpu={**CPU, "cpu_total_s": 1004.0, "cpu_busy_s": 50.2})
"""A second later on four CPUs, of which other programs used 5 %."""


def seen(cpu: dict[str, float] | None = None, **changes: Any) -> list[str]:
    return list(activity(FIRST, replace(QUIET, cpu={**QUIET.cpu, **(cpu or {})}, **changes)))


def test_a_quiet_host_disturbs_nothing() -> None:
    assert seen() == []
    assert list(activity(FIRST, FIRST)) == [], "no time has passed"
    assert seen(disks={"sdb": (10**6, 1 << 40)}) == [], "a disk that appears meanwhile is not busy"


def test_load_names_at_most_three_of_its_programs() -> None:
    processes = {(str(number), "1", f"p{number}"): number / 10 for number in range(1, 6)}
    (text,) = seen({"cpu_busy_s": 52.0}, processes={**processes, KEY: 5.0})
    assert text == "other programs use 50 % of the CPU (p5 5, p4 4, p3 3 and 2 more)"
    (text,) = seen({"cpu_busy_s": 52.0}, processes={("4711", "200", "later"): 0.4})
    assert text.endswith("(later 4711)"), "a reused process number is another process"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cpu": {"cpu_steal_s": 0.4}}, "the hypervisor takes 10 % of the CPU time for others"),
        ({"disks": {"sda": (1010, (1 << 30) + (20 << 20))}}, "other I/O reaches sda: 20 MiB/s, 10 IOPS"),
        ({"disks": {"sda": (1200, (1 << 30) + (800 << 10))}}, "other I/O reaches sda: 800 KiB/s, 200 IOPS"),
    ],
)
def test_what_others_do_is_measured(changes: dict[str, Any], text: str) -> None:
    assert seen(**changes) == [text]


@contextmanager
def busy_process(program: str, *arguments: str) -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", program, *arguments])
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        os.sched_yield()


def test_a_real_busy_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named if it uses enough of the CPUs."""
    monkeypatch.setattr(other_programs, "BUSY_SHARE", 0.0)
    with busy_process("while True: pass") as pid:
        start = cpu_s(pid)
        found = disturbances([], pause=lambda: wait_until(lambda: cpu_s(pid) > start + 0.3))
    assert sum(text.startswith("other programs use") for text in found) == 1
    assert str(os.getpid()) not in {number for number, *_ in take(()).processes}


def test_counters_of_disks_are_read(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.proc / "stat").write_text("cpu  100 0 50 800 10 0 5 35 0 0\nintr 7\n")
    process = place.process(42)
    (process / "stat").write_text("42 (a (b) c) S " + " ".join(str(number) for number in range(1, 40)))
    place.nvme()
    (place.directory("nvme0n1") / "stat").write_text("10 0 16 5 20 0 32 7 0 9 12 0 0 0 0 0 0\n")
    sample = take(("nvme0n1", "gone"), place.host)
    assert sample.disks == {"nvme0n1": (30, 48 * 512)}
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert sample.processes == {("42", "19", "a (b) c"): pytest.approx((11 + 12) * tick_s)}
    assert sample.cpu["cpu_busy_s"] == pytest.approx(150 * tick_s)
    assert sample.cpu["cpu_steal_s"] == pytest.approx(35 * tick_s)
