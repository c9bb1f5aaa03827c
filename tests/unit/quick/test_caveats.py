"""The three warnings of a quick look: each begins with what was seen, and an ordinary place gets none."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from storage_places import Place

from drivelab.analysis.values.quick_look import SHOWN, Value
from drivelab.cli.main import parser
from drivelab.host.stack.stack import Layer
from drivelab.quick import caveats
from drivelab.quick.activity import Disk, Process, Sample, take
from drivelab.quick.caveats import BETWEEN, BUSY, KINDS, ROUGH, activity, link_mib_s, of_values, warnings
from drivelab.quick.session import announcement

KEY = (4711, "100")
FIRST = Sample(100.0, 1000.0, 50.0, 0.0, {KEY: Process("dd", 5.0, 1 << 30)}, {"sda": Disk(1000, 1 << 30)})
QUIET = replace(FIRST, time_s=101.0, cpu_total_s=1004.0, cpu_busy_s=50.2)
"""A second later on four CPUs, of which other programs used 5 %."""


def seen(**changes: object) -> list[str]:
    return [text for _, text in activity(FIRST, replace(QUIET, **changes))]  # type: ignore[arg-type]


def test_a_quiet_host_gets_no_warning() -> None:
    assert seen() == []
    assert list(activity(FIRST, FIRST)) == [], "no time has passed"
    assert seen(disks={"sdb": Disk(10**6, 1 << 40)}) == [], "a disk that appears meanwhile is not busy"


def test_load_names_at_most_three_of_its_programs() -> None:
    processes = {(number, "1"): Process(f"p{number}", number / 10, 0) for number in range(1, 6)}
    (text,) = seen(cpu_busy_s=52.0, processes={**processes, KEY: Process("dd", 5.0, 1 << 30)})
    assert text == "other programs use 50 % of the CPU (p5 5, p4 4, p3 3 and 2 more)"
    (text,) = seen(cpu_busy_s=52.0, processes={(4711, "200"): Process("later", 0.4, 0)})
    assert text.endswith("(later 4711)"), "a reused process number is another process"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cpu_steal_s": 0.4}, "the hypervisor takes 10 % of the CPU time for others"),
        ({"disks": {"sda": Disk(1010, (1 << 30) + (20 << 20))},
          "processes": {KEY: Process("dd", 5, (1 << 30) + (20 << 20))}},
         "other I/O reaches sda: 20 MiB/s, 10 IOPS (dd 4711)"),
        ({"disks": {"sda": Disk(1200, (1 << 30) + (800 << 10))}}, "other I/O reaches sda: 800 KiB/s, 200 IOPS"),
        ({"disks": {"sda": Disk(2000, 1 << 30)}, "processes": {KEY: Process("dd", 5.0, None)}},
         "other I/O reaches sda: 0 B/s, 1,000 IOPS"),
    ],
)  # fmt: skip
def test_what_others_do_is_measured(changes: dict[str, Any], text: str) -> None:
    assert seen(**changes) == [text]


def test_the_causes_of_a_kind_are_one_warning_that_begins_with_them() -> None:
    one, two, other = ((BUSY, "one"), (BUSY, "two"), (ROUGH, "other"))
    assert warnings([other, one, two, one]) == (f"One; two. {KINDS[BUSY]}", f"Other. {KINDS[ROUGH]}")
    assert warnings([]) == ()


def test_a_full_file_system_is_rough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caveats.os, "statvfs", lambda path: SimpleNamespace(f_blocks=100, f_bfree=6, f_bavail=5))
    ((kind, text),) = caveats._space(tmp_path)
    assert (kind, text.partition(",")[0]) == (ROUGH, "the file system is 95 % full")


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


def test_a_real_busy_process_shows_in_two_samples() -> None:
    with busy_process("while True: pass") as pid:
        first = take(())
        start = cpu_s(pid)
        wait_until(lambda: cpu_s(pid) > start + 0.1)
        second = take(())
    (key,) = [key for key in second.processes if key[0] == pid]
    before_s = first.processes[key].cpu_s if key in first.processes else 0.0
    assert second.processes[key].cpu_s - before_s >= 0.1
    assert second.cpu_total_s > first.cpu_total_s
    assert os.getpid() not in {number for number, _ in second.processes}


def test_counters_of_disks_are_read(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.proc / "stat").write_text("cpu  100 0 50 800 10 0 5 35 0 0\nintr 7\n")
    process = place.process(42)
    (process / "stat").write_text("42 (a (b) c) S " + " ".join(str(number) for number in range(1, 40)))
    (process / "io").write_text("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n")
    place.nvme()
    (place.directory("nvme0n1") / "stat").write_text("10 0 16 5 20 0 32 7 0 9 12 0 0 0 0 0 0\n")
    sample = take(("nvme0n1", "gone"), place.host)
    assert sample.disks == {"nvme0n1": Disk(30, 48 * 512)}
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert sample.processes == {(42, "19"): Process("a (b) c", pytest.approx((11 + 12) * tick_s), 12288)}
    assert sample.cpu_busy_s == pytest.approx(150 * tick_s)
    assert sample.cpu_total_s == pytest.approx(1000 * tick_s)
    assert sample.cpu_steal_s == pytest.approx(35 * tick_s)


def test_a_measurement_is_running_while_its_place_is_locked_or_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    assert caveats.running_studies() == ()
    (tmp_path / "places").mkdir()
    path = tmp_path / "places/1f.json"
    path.write_text(json.dumps({"who": "op7/pts-iops (/results)", "limit": 1, "until_s": 0.0}))
    assert caveats.running_studies() == ()  # its process was killed
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert caveats.running_studies() == ("op7/pts-iops (/results)",)
    assert caveats.running_studies() == ()
    path.write_text(json.dumps({"who": "op7", "limit": 1, "until_s": time.time() + 3600}))
    assert caveats.running_studies() == ("op7",)
    path.write_text("{")
    assert caveats.running_studies() == ()
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert caveats.running_studies() == ("a measurement",)


def test_the_whole_check_reads_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy process of this host appears in the causes, if it uses enough of the CPUs."""
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(caveats, "BUSY_SHARE", 0.0)
    with busy_process("while True: pass") as pid:
        start = cpu_s(pid)
        found = caveats.disturbances([], pause=lambda: wait_until(lambda: cpu_s(pid) > start + 0.3))
        caveats.of_places([(tmp_path, ()), (tmp_path.parent, ())])
    assert sum(text.startswith("other programs use") for _, text in found) == 1
    assert list(tmp_path.iterdir()) == []


def test_equal_disks_of_an_array_are_named_once() -> None:
    disk = Layer("disk", "nvme0n1", "virtual disk QEMU", ("It may be cached.",))
    plan = SimpleNamespace(context={"device": "/dev/md0"}, drive="md0", kind="read-only")
    under = (Layer("md", "md0", "RAID 5 of 3 disks"), disk, disk, disk)
    look: Any = SimpleNamespace(
        requests=["one"], plans=[plan], layers=[under], causes=((BUSY, "it is hot"),), longest_s=60
    )
    assert list(announcement(look))[:4] == [
        "md0: /dev/md0, RAID 5 of 3 disks, on virtual disk QEMU",
        "  reads only; nothing is written",
        "  note: It may be cached.",
        f"warning: It is hot. {KINDS[BUSY]}",
    ]


@pytest.mark.parametrize(("test", "kind"), caveats.FASTEST_US)
def test_a_latency_that_no_drive_of_its_class_has_is_a_caches(test: str, kind: str) -> None:
    (shown,) = (shown for shown in SHOWN if shown.key == test)
    least, less = (Value(shown, factor * caveats.FASTEST_US[test, kind], 1.0, ()) for factor in (1.0, 0.99))
    layers = (Layer("file system", "ext4", ""),)
    assert list(of_values([least], kind, layers)) == []
    ((cause, text),) = of_values([less], kind, layers)
    assert cause == BETWEEN
    assert "so a cache answers" in text


@pytest.mark.parametrize(
    ("gt_s", "lanes", "mb_s"),
    [(2.5, 1, 250), (5, 2, 1000), (8, 4, 3938), (16, 4, 7877), (32, 4, 15754), (1.5, 1, 150), (3, 1, 300), (6, 1, 600)],
)
def test_links_carry_what_their_standards_say(gt_s: float, lanes: float, mb_s: float) -> None:
    """PCIe 1.0 to 5.0, and SATA."""
    assert link_mib_s(gt_s, lanes) == pytest.approx(mb_s * 1e6 / (1 << 20), rel=1e-3)


def test_each_remedy_names_a_command_or_option_that_exists() -> None:
    for text in KINDS.values():
        names = re.findall(r"`\./drivelab ([a-z-]+)", text)
        options = re.findall(r"--[a-z]+", text)
        assert names or options
        assert set(names) <= parser().commands.about.keys()
        assert set(options) <= {"--size", "--time"}
