"""Each thing that speaks against a start is named with its reason and remedy, and a quiet host gets no sentence."""

from __future__ import annotations

import fcntl
import json
import os
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

from drivelab.drives.arrays import ArrayState
from drivelab.host.stack.stack import Layer
from drivelab.quick import before
from drivelab.quick.activity import Disk, Process, Sample, take
from drivelab.quick.before import Facts, running_studies, sentences
from drivelab.quick.session import announcement

KEY = (4711, "100")
FIRST = Sample(100.0, 1000.0, 50.0, 0.0, {KEY: Process("dd", 5.0, 1 << 30)}, {"sda": Disk(1000, 1 << 30)})
QUIET = replace(FIRST, time_s=101.0, cpu_total_s=1004.0, cpu_busy_s=50.2)
"""A second later on four CPUs, of which other programs used 5 %."""


def changed(**changes: object) -> tuple[str, ...]:
    return sentences(FIRST, replace(QUIET, **changes), Facts())


def test_a_quiet_host_gets_no_sentence() -> None:
    facts = Facts(
        (("sda", 45.0, 80.0),), 4000.0, 4800.0, 4800.0, "schedutil", "acpi-cpufreq", False, 50 << 30, 50 << 30,
        (ArrayState("md0", "clean", 0, None),),
    )  # fmt: skip
    assert sentences(FIRST, QUIET, facts) == ()
    assert sentences(FIRST, FIRST, facts) == ()  # no time has passed


def test_load_names_its_programs() -> None:
    processes = {
        KEY: Process("dd", 6.0, 1 << 30),
        (4712, "100"): Process("new", 0.5, 0),
        (1, "1"): Process("idle", 9, 0),
    }
    first = replace(FIRST, processes={**FIRST.processes, (1, "1"): Process("idle", 9, 0)})
    (text,) = sentences(first, replace(QUIET, cpu_busy_s=52.0, processes=processes), Facts())
    assert text.startswith("Other programs use 50 % of the CPU (dd 4711, new 4712). ")
    assert "Stop these programs" in text


def test_at_most_three_programs_are_named() -> None:
    processes = {(number, "1"): Process(f"p{number}", number / 10, 0) for number in range(1, 6)}
    (text,) = changed(cpu_busy_s=52.0, processes=processes)
    assert "(p5 5, p4 4, p3 3 and 2 more)" in text


def test_a_reused_process_number_is_another_process() -> None:
    (text,) = changed(cpu_busy_s=52.0, processes={(4711, "200"): Process("later", 0.4, 0)})
    assert "(later 4711)" in text


def test_stolen_time_is_the_hypervisors() -> None:
    (text,) = changed(cpu_steal_s=0.4)
    assert text.startswith("The hypervisor takes 10 % of the CPU time")


@pytest.mark.parametrize(
    ("disk", "rates"),
    [
        (Disk(1010, (1 << 30) + (20 << 20)), "20 MiB/s, 10 IOPS"),
        (Disk(1200, (1 << 30) + (800 << 10)), "800 KiB/s, 200 IOPS"),
    ],
)
def test_other_io_names_disk_rates_and_programs(disk: Disk, rates: str) -> None:
    (text,) = changed(disks={"sda": disk}, processes={KEY: Process("dd", 5.0, (1 << 30) + (20 << 20))})
    assert text.startswith(f"Other I/O reaches sda: {rates} (dd 4711). ")


def test_other_io_of_unreadable_processes_names_none() -> None:
    (text,) = changed(disks={"sda": Disk(2000, 1 << 30)}, processes={KEY: Process("dd", 5.0, None)})
    assert "1,000 IOPS. It shares" in text


def test_a_disk_that_appears_meanwhile_is_not_busy() -> None:
    assert changed(disks={"sdb": Disk(10**6, 1 << 40)}) == ()


@pytest.mark.parametrize(
    ("facts", "beginning", "remedy"),
    [
        (Facts(temperatures_c=(("nvme0n1", 71.0, 80.0),)), "nvme0n1 has 71 °C, and its limit is 80 °C.", "cool down"),
        (Facts(governor="powersave", frequency_driver="acpi-cpufreq"), "The CPU stays at its lowest", "cpupower"),
        (Facts(frequency_mhz=800.0, frequency_limit_mhz=1000.0, frequency_max_mhz=4800.0),
         "The CPU may use at most 1,000 of 4,800 MHz.", "./drivelab doctor"),
        (Facts(frequency_mhz=800.0, frequency_limit_mhz=4800.0, frequency_max_mhz=4800.0),
         "The CPU reaches 800 of 4,800 MHz under load.", "cooling"),
        (Facts(on_battery=True), "The host runs on battery.", "Connect"),
        (Facts(used_bytes=95 << 30, available_bytes=5 << 30), "The file system is 95 % full.", "fstrim"),
        (Facts(arrays=(ArrayState("md0", "degraded", 1, None),)),
         "The array md0 is degraded, 1 missing or not filled.", "mdadm --detail"),
        (Facts(arrays=(ArrayState("md0", "resyncing", 0, 25.0),)),
         "The array md0 is resyncing, 25 % done.", "/proc/mdstat"),
        (Facts(studies=("op7/pts-iops (/results)",)), "drivelab measures now: op7/pts-iops", "./drivelab watch"),
    ],
)  # fmt: skip
def test_each_fact_gives_one_sentence_with_its_remedy(facts: Facts, beginning: str, remedy: str) -> None:
    (text,) = sentences(FIRST, QUIET, facts)
    assert text.startswith(beginning)
    assert remedy in text
    assert text.count(". ") >= 2  # what was seen, why it matters, what to do


@pytest.mark.parametrize("driver", ["intel_pstate", "amd-pstate-epp"])
def test_powersave_is_no_brake_where_the_cpu_manages_itself(driver: str) -> None:
    assert sentences(FIRST, QUIET, Facts(governor="powersave", frequency_driver=driver)) == ()


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


def test_facts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    place = Place(tmp_path)
    place.nvme()
    place.virtual("md0", ("nvme0n1",), md__degraded="1", md__sync_action="resync", md__sync_completed="1000 / 4000")
    files = {
        "class/power_supply/BAT0/type": "Battery",
        "class/power_supply/AC/type": "Mains",
        "class/power_supply/AC/online": "0",
        "devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
        "devices/system/cpu/cpufreq/policy0/scaling_driver": "intel_pstate",
        "devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "800000",
        "devices/system/cpu/cpufreq/policy1/scaling_cur_freq": "3900000",
        "devices/system/cpu/cpufreq/policy0/scaling_max_freq": "4000000",
        "devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "4800000",
        "class/block/nvme0n1/device/hwmon0/name": "nvme",
        "class/block/nvme0n1/device/hwmon0/temp1_input": "74850",
        "class/block/nvme0n1/device/hwmon0/temp1_max": "81850",
    }
    for name, text in files.items():
        path = place.sys / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    layers = (Layer("md", "md0", ""), Layer("disk", "nvme0n1", ""))
    facts = before.read_facts(tmp_path, layers, place.host)
    space = os.statvfs(tmp_path)
    assert facts == Facts(
        (("nvme0n1", 74.85, 81.85),), 3900.0, 4000.0, 4800.0, "powersave", "intel_pstate", True,
        facts.used_bytes, facts.available_bytes, (ArrayState("md0", "degraded", 1, 25.0),), (),
    )  # fmt: skip
    assert 0 < facts.used_bytes < space.f_blocks * space.f_frsize
    assert facts.used_bytes + facts.available_bytes <= space.f_blocks * space.f_frsize


def test_the_critical_temperature_serves_where_there_is_no_warning(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.nvme()
    folder = place.directory("nvme0n1") / "device/hwmon0"
    folder.mkdir()
    for name, text in {"name": "nvme", "temp1_input": "60000", "temp1_max": "65261850", "temp1_crit": "84850"}.items():
        (folder / name).write_text(f"{text}\n")
    facts = before.read_facts(Path("/dev/null"), (Layer("disk", "nvme0n1", ""),), place.host)
    assert facts.temperatures_c == (("nvme0n1", 60.0, 84.85),)
    assert facts.available_bytes is None


def test_a_measurement_is_running_while_its_place_is_locked_or_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    assert running_studies() == ()
    (tmp_path / "places").mkdir()
    path = tmp_path / "places/1f.json"
    path.write_text(json.dumps({"who": "op7/pts-iops (/results)", "limit": 1, "until_s": 0.0}))
    assert running_studies() == ()  # its process was killed
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert running_studies() == ("op7/pts-iops (/results)",)
    assert running_studies() == ()
    path.write_text(json.dumps({"who": "op7", "limit": 1, "until_s": time.time() + 3600}))
    assert running_studies() == ("op7",)
    path.write_text("{")
    assert running_studies() == ()
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert running_studies() == ("a measurement",)


def test_the_whole_check_reads_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy process of this host appears in the sentences, if it uses enough of the CPUs."""
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(before, "BUSY_SHARE", 0.0)
    with busy_process("while True: pass") as pid:
        start = cpu_s(pid)
        places = [(tmp_path, ()), (tmp_path.parent, ())]
        found = before.reasons(places, pause=lambda: wait_until(lambda: cpu_s(pid) > start + 0.3))
    assert sum(text.startswith("Other programs use") for text in found) == 1
    assert list(tmp_path.iterdir()) == []


def test_equal_disks_of_an_array_are_named_once() -> None:
    disk = Layer("disk", "nvme0n1", "virtual disk QEMU", ("It may be cached.",))
    plan = SimpleNamespace(context={"device": "/dev/md0"}, drive="md0", kind="read-only")
    under = (Layer("md", "md0", "RAID 5 of 3 disks"), disk, disk, disk)
    look: Any = SimpleNamespace(requests=["one"], plans=[plan], layers=[under], warnings=("It is hot.",), longest_s=60)
    assert list(announcement(look))[:4] == [
        "md0: /dev/md0, RAID 5 of 3 disks, on virtual disk QEMU",
        "  reads only; nothing is written",
        "  note: It may be cached.",
        "warning: It is hot.",
    ]
