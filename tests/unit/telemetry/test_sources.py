"""Sources read files in the kernel's format and the output of programs, also of several disks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from device_trees import Tree

from drivelab.drives import tools
from drivelab.drives.tools import Output
from drivelab.telemetry import drive_sensors, power
from drivelab.telemetry.host import cpu_source, cpu_times, frequency_source, siblings
from drivelab.telemetry.power import Meter
from drivelab.telemetry.sampler import Source
from drivelab.telemetry.sources import array_source, combined, sources_for

SMART = {
    "temperature": 315, "avail_spare": 100, "percent_used": 3, "data_units_read": 10, "data_units_written": "2,000",
    "media_errors": 0, "warning_temp_time": 4, "critical_comp_time": 0, "thm_temp1_trans_count": 5,
    "thm_temp2_trans_count": 0, "thm_temp1_total_time": 61, "thm_temp2_total_time": 0,
}  # fmt: skip


def only(source: Source | None) -> Source:
    assert source is not None
    return source


def test_own_cpu_time_is_separated_from_load(host: Any) -> None:
    host.cpu(user=500, system=300, idle=1000, softirq=70, steal=30)
    host.process("self", 10, 20, 30, 40)
    host.process("11", 100, 50)
    host.process("12", 1, 2, 3, 4)
    host.write("proc/self/task/1/children", "11 99")
    host.write("proc/self/task/2/children", "")
    values = cpu_source(host.proc, helpers=[12]).read()
    assert values == {
        "cpu_total_s": 19.0, "cpu_busy_s": 8.0, "cpu_user_s": 5.0, "cpu_interrupt_s": 0.7, "cpu_steal_s": 0.3,
        "interrupts": 1234.0, "own_cpu_s": pytest.approx(2.6),
    }  # fmt: skip
    served = cpu_source(host.proc, helpers=[12], kernel_serves=True).read()
    assert served["own_user_s"] == pytest.approx(1.44)
    assert "own_cpu_s" not in served


def test_time_in_which_a_process_waited_for_a_cpu(host: Any) -> None:
    host.cpu(user=500, idle=1000)
    host.write("proc/pressure/cpu", "some avg10=1.00 avg60=0.5 avg300=0.1 total=2500000\nfull avg10=0.00 total=7\n")

    def waited_s(smt: str) -> float | None:
        host.write("devices/system/cpu/smt/active", smt)
        return cpu_source(host.proc, sys_root=host.sys).read().get("cpu_waited_s")

    assert waited_s("0\n") == 2.5, "of one CPU"
    host.write("proc/stat", (host.proc / "stat").read_text().replace("cpu0 1", "cpu0 1\ncpu1 1"))
    assert waited_s("0\n") == 5.0, "as a share of the time of two CPUs"
    assert waited_s("1\n") is None, "two CPUs of one core slow each other without a wait"


def test_simultaneous_measurements_count_as_own(host: Any) -> None:
    host.cpu(user=500, idle=1000)
    for pid, ticks in (("self", 10), ("11", 100), ("20", 5), ("21", 200), ("99", 1000)):
        host.process(pid, ticks, 0)
    host.write("proc/self/task/1/children", "11")
    host.write("proc/20/task/20/children", "21")
    assert cpu_source(host.proc, beside=lambda: [20]).read()["own_cpu_s"] == pytest.approx(3.15)
    assert cpu_source(host.proc).read()["own_cpu_s"] == pytest.approx(1.1)


def test_a_process_that_ends_during_the_reading_has_no_children(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cpu(user=500, idle=1000)
    host.process("self", 10, 20)
    host.write("proc/self/task/1/children", "")
    host.write("proc/20/task/20/children", "21")
    before = cpu_source(host.proc).read()
    looked = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path) == host.proc / "20/task":
            raise FileNotFoundError(path)
        return looked(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert cpu_source(host.proc, beside=lambda: [20]).read() == before


def test_siblings_are_the_other_children_of_the_parent(host: Any) -> None:
    host.write(f"proc/{os.getppid()}/task/7/children", f"11 {os.getpid()} 12")
    assert siblings(host.proc) == [11, 12]


def test_load_is_unknown_without_a_list_of_children(host: Any) -> None:
    host.cpu(idle=5)
    host.process("self", 1, 1)
    assert "own_cpu_s" not in cpu_source(host.proc).read()


def test_the_cpu_time_of_this_process_is_its_own() -> None:
    source = cpu_source(Path("/proc"))
    before = source.read()
    sum(range(3_000_000))
    after = source.read()
    used_s = after["own_cpu_s"] - before["own_cpu_s"]
    assert 0 < used_s <= after["cpu_total_s"] - before["cpu_total_s"] + 0.1


def test_frequency_is_the_mean_of_the_policies(host: Any) -> None:
    assert frequency_source(host.sys) is None
    host.write("devices/system/cpu/cpufreq/policy0/scaling_cur_freq", 2_000_000)
    host.write("devices/system/cpu/cpufreq/policy1/scaling_cur_freq", 3_000_000)
    source = only(frequency_source(host.sys))
    assert source.read() == {"cpu_frequency_mhz": 2500.0}
    assert not source.prompt


def test_the_counters_of_stat_are_by_the_kernels_order(host: Any) -> None:
    host.block("sdz", "scsi0")
    assert drive_sensors.sectors_source("sdz", host.sys).read() == {
        "reads": 1.0, "sectors_read": 3.0, "read_ms": 4.0, "writes": 5.0, "sectors_written": 7000.0, "write_ms": 8.0,
        "in_flight": 9.0, "sectors_discarded": 1400.0,
    }  # fmt: skip


def test_an_old_kernel_without_discards_has_no_field(host: Any) -> None:
    host.block("sdz", "scsi0")
    (host.sys / "class/block/sdz/stat").write_text("1 2 3 4 5 6 7 8 9 10 11\n")
    assert "sectors_discarded" not in drive_sensors.sectors_source("sdz", host.sys).read()


@pytest.mark.parametrize("place", ["hwmon3", "device/hwmon/hwmon3"])
def test_an_nvme_drive_has_its_composite_temperature_every_second(host: Any, place: str) -> None:
    folder = host.block("nvme0n1", "pci/nvme/nvme0")
    monitor = folder.relative_to(host.sys) / place
    for name, value in {"name": "nvme", "temp1_input": 41850, "temp1_max": 81850, "temp1_alarm": 0,
                        "temp3_input": 50850, "temp3_max": 65261850, "temp2_input": 39850}.items():  # fmt: skip
        host.write(f"{monitor}/{name}", value)
    source = only(drive_sensors.temperature_source("nvme0n1", host.sys))
    assert source.read() == {
        "temperature_c": 41.85, "temperature_sensor_1_c": 39.85, "temperature_sensor_2_c": 50.85,
        "temperature_limit_c": 81.85, "temperature_alarm": 0.0,
    }  # fmt: skip
    assert (source.period_s, source.prompt) == (1.0, False)


def test_a_sata_drive_is_read_less_often_and_an_implausible_limit_is_dropped(host: Any) -> None:
    folder = host.block("sda", "ata1/host0/0:0:0:0")
    monitor = f"{folder.relative_to(host.sys)}/hwmon/hwmon0"
    for name, value in {"name": "drivetemp", "temp1_input": 30000, "temp1_max": -273150}.items():
        host.write(f"{monitor}/{name}", value)
    source = only(drive_sensors.temperature_source("sda", host.sys))
    assert source.read() == {"temperature_c": 30.0}
    assert source.period_s == 10.0


def test_a_drive_without_sensors_has_no_temperature(host: Any) -> None:
    host.block("vda", "virtio0")
    assert drive_sensors.temperature_source("vda", host.sys) is None
    assert power.drive_power_source("vda", host.sys) is None


def test_an_nvme_drive_has_smart_log_and_power_state(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host.block("nvme0n1", "pci/nvme/nvme0")
    answers = {"id-ctrl": {"wctemp": 343}, "smart-log": SMART}
    state = "get-feature:0x02 (Power Management), Current value:0x00000003\n"
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(tools, "read_json", lambda program, *arguments: answers[arguments[0]])
    monkeypatch.setattr(tools, "run", lambda program, *arguments, timeout_s=60.0: Output(0, state, ""))
    smart, power_state = drive_sensors.nvme_sources("nvme0n1", host.sys)
    assert smart.read()["temperature_limit_c"] == 70.0
    assert power_state.read() == {"power_state": 3.0}
    assert smart.period_s == power_state.period_s == 10.0
    answers["smart-log"] = None  # type: ignore[assignment]
    with pytest.raises(OSError, match="smart-log returned nothing"):
        smart.read()
    assert drive_sensors.nvme_sources("sda", host.sys) == []


def test_smartctl_runs_only_at_start_and_end(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host.write(f"{host.block('sda', 'ata1').relative_to(host.sys)}/scsi_level", 6)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert drive_sensors.smartctl_source("sda", host.sys) is None
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
    printed = Output(4, '{"temperature": {"current": 30}}', "")  # the status is a bit mask of drive problems
    monkeypatch.setattr(tools, "run", lambda program, *arguments, timeout_s=60.0: printed)
    source = only(drive_sensors.smartctl_source("sda", host.sys))
    assert source.period_s is None
    assert source.read() == {"temperature_c": 30.0}


def test_power_of_drive_and_host(host: Any) -> None:
    monitor = f"{host.block('nvme0n1', 'pci/nvme/nvme0').relative_to(host.sys)}/hwmon1"
    host.write(f"{monitor}/name", "nvme")
    host.write(f"{monitor}/power1_input", 6_500_000)
    assert only(power.drive_power_source("nvme0n1", host.sys)).read() == {"drive_power_w": 6.5}
    assert power.host_power_source(host.sys) is None
    host.write("class/hwmon/hwmon0/name", "power_meter")
    host.write("class/hwmon/hwmon0/power1_average", 210_000_000)
    host.write("class/hwmon/hwmon1/name", "amdgpu")
    host.write("class/hwmon/hwmon1/power1_average", 90_000_000)
    assert only(power.host_power_source(host.sys)).read() == {"host_power_w": 210.0}


def test_energy_of_the_processors_continues_when_a_counter_wraps(host: Any) -> None:
    assert power.processor_energy_source(host.sys) is None
    for number, name in enumerate(("package-0", "package-1", "psys")):
        for file, value in (("name", name), ("energy_uj", 9_000_000), ("max_energy_range_uj", 10_000_000)):
            host.write(f"class/powercap/intel-rapl:{number}/{file}", value)
    source = only(power.processor_energy_source(host.sys))
    assert source.read() == {"processor_energy_j": 0.0}
    host.write("class/powercap/intel-rapl:0/energy_uj", 9_500_000)
    host.write("class/powercap/intel-rapl:1/energy_uj", 1_000_000)
    assert source.read() == {"processor_energy_j": pytest.approx(2.5)}


def test_a_meter_that_appends_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "meter.csv"
    path.write_text("time,watts\n1,99.0\n")
    read = only(power.meter_source(Meter(csv=path))).read
    assert read() == {}, "lines from before the measurement do not count"
    with path.open("a") as file:
        file.write("2,5.0\n3, 7.0\nbroken,\n4,1")
    assert read() == {"meter_power_w": 6.0}
    with path.open("a") as file:
        file.write("1.5\n")
    assert read() == {"meter_power_w": 11.5}
    path.write_text("5,2.0\n")
    assert read() == {"meter_power_w": 2.0}, "the file was restarted"
    path.unlink()
    assert read() == {}


def test_a_meter_that_is_a_command(tmp_path: Path) -> None:
    source = only(power.meter_source(Meter.from_mapping({"command": ["echo", "power: 7.25 W $(id)"]})))
    assert source.read() == {"meter_power_w": 7.25}
    assert source.period_s == 10.0
    with pytest.raises(OSError, match="echo"):
        only(power.meter_source(Meter(command=("echo", "none")))).read()
    assert power.meter_source(Meter.from_mapping({})) is None


def test_only_available_sources_are_listed(host: Any) -> None:
    host.block("loop7", "virtual/block")
    host.cpu()
    sources = sources_for("loop7", sys_root=host.sys, proc_root=host.proc)
    assert [source.name for source in sources] == ["host", "sectors"]
    assert all(source.prompt for source in sources)


STAT = """\
cpu  130 0 200 500 0 10 60 0 0 0
cpu0 100 0 100 200 0 10 50 0 0 0
cpu1 30 0 100 300 5 0 10 7 0 0
intr 1234 0 9
"""


def test_busy_is_all_but_idle_waiting_and_stolen_time(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT)
    assert cpu_times(tmp_path) == {"cpu0": (460, 260, 60), "cpu1": (452, 140, 10)}
    assert cpu_times(tmp_path / "missing") == {}


def test_an_array_is_compared_with_the_wanted_state(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1, "sdy": 1})
    name = tree.composed("md", "sdz1", "sdy1")
    (tree.directory(name) / "md/degraded").write_text("1\n")
    for wanted, other in (("clean", 1.0), ("degraded", 0.0)):
        source = array_source(name, wanted, tree.sys)
        assert source is not None
        assert source.read() == {"array_missing": 1.0, "array_other": other}
        assert source.prompt, "a cell ends between two readings of a second"
    assert array_source("sdz", "clean", tree.sys) is None


def test_each_reading_names_the_members() -> None:
    def source(name: str, field: str, value: float) -> Source:
        return Source(name, lambda: {field: value}, period_s=7.0)

    sources = combined({
        "S1": [source("temperature", "temperature_c", 40.0), source("smart", "media_errors", 1.0)],
        "S2": [source("temperature", "temperature_c", 50.0)],
    })  # fmt: skip
    assert [(each.name, each.period_s) for each in sources] == [("temperature", 7.0), ("smart", 7.0)]
    assert sources[0].read() == {"S1/temperature_c": 40.0, "S2/temperature_c": 50.0, "temperature_c": 50.0}
    assert sources[1].read() == {"S1/media_errors": 1.0, "media_errors": 1.0}
