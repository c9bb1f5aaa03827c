"""Rows of simulated hosts, and the effect of `apply` on them; the table of outcomes has the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_hosts import BLOCK_DEVICES, LAPTOP, NVME, POLICY, SERVER, VM, Build, lay_out, machine_of

from drivelab.core.errors import UserError
from drivelab.drives.undo import Undo, Write, current_value, perform
from drivelab.host import settings as module
from drivelab.host.catalogue import catalogue
from drivelab.host.machine import Machine
from drivelab.host.settings import NOT_AVAILABLE, apply, for_study, snapshot
from drivelab.host.temporary import Temporary

TIMERS = "apt-daily.timer fstrim.timer backup.timer logrotate.timer"
KEYS = ["name", "scope", "state", "wanted", "deviation", "effect", "how", "settable"]


def rows(machine: Machine, scenario: str, *drives: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in snapshot(drives, scenario, machine)}


def test_rows_have_the_same_keys_for_every_setting(build: Build) -> None:
    snapshot_rows = snapshot(["nvme0n1", "sda"], "synthetic", build(SERVER))
    per_drive = sum(setting.per_drive for setting in catalogue())
    assert len(snapshot_rows) == len(catalogue()) + per_drive
    assert all(list(row) == KEYS for row in snapshot_rows)
    assert {row["scope"] for row in snapshot_rows} == {"host", "nvme0n1", "sda"}


def test_an_unreadable_host_has_no_available_setting(tmp_path: Path) -> None:
    machine = machine_of(tmp_path, synchronised=None)
    assert {row["state"] for row in snapshot(["sdz"], "synthetic", machine)} == {NOT_AVAILABLE}


def test_nvme_power_state_comes_from_nvme_cli(build: Build) -> None:
    machine = build(SERVER)
    answer = "get-feature:0x02 (Power Management), Current value:0x00000003\n"
    answering = replace(machine, ask=lambda *argv: answer if argv[0] == "nvme" else None)
    row = rows(answering, "synthetic", "nvme0n1")["NVMe power state"]
    assert (row["state"], row["deviation"]) == ("3", True)


def test_native_multipath_finds_the_controller(build: Build) -> None:
    root = build(SERVER).sys_root.parent
    controller = root / NVME / "nvme/nvme0"
    subsystem = root / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    (subsystem / "nvme1n1/queue").mkdir(parents=True)
    (subsystem / "nvme1n1/device").symlink_to(subsystem)
    (subsystem / "nvme0").symlink_to(controller)
    (root / "sys/class/block/nvme1n1").symlink_to(subsystem / "nvme1n1")
    row = rows(machine_of(root), "synthetic", "nvme1n1")["PCIe link"]
    assert row["state"] == "8.0 GT/s x4 of 16.0 GT/s x4"


@pytest.mark.parametrize(
    ("driver", "governor", "offered", "deviates", "target"),
    [
        ("intel_pstate", "powersave", "performance powersave", False, None),
        ("intel_pstate", "performance", "performance powersave", True, "powersave"),
        ("acpi-cpufreq", "powersave", "ondemand schedutil powersave", True, "schedutil"),
        ("acpi-cpufreq", "ondemand", "ondemand powersave", False, None),
        ("acpi-cpufreq", "userspace", "ondemand powersave", True, "ondemand"),
        ("intel_cpufreq", "schedutil", "schedutil", False, None),
    ],
)
def test_balanced_governor_depends_on_the_driver(
    build: Build, run_folder: Path, driver: str, governor: str, offered: str, deviates: bool, target: str | None
) -> None:
    policy = {"scaling_driver": driver, "scaling_governor": governor, "scaling_available_governors": offered}
    machine = build({**VM, **{f"{POLICY}0/{name}": value for name, value in policy.items()}})
    assert rows(machine, "real-world")["CPU governor"]["deviation"] is deviates
    with Temporary("host").claim() as temporary:
        apply("real-world", [], temporary, machine)
        path = machine.sys_root / "devices/system/cpu/cpufreq/policy0/scaling_governor"
        assert path.read_text().strip() == (target or governor)


def test_unknown_scenario_is_refused(build: Build) -> None:
    with pytest.raises(UserError, match="scenario 'fast' does not exist"):
        snapshot([], "fast", build(VM))


def test_apply_sets_verifies_and_reports(build: Build, run_folder: Path) -> None:
    machine = build(SERVER, TIMERS)
    before = contents(machine)
    with Temporary("host").claim() as temporary:
        sentences = apply("synthetic", ["nvme0n1"], temporary, machine)
        by_name = rows(machine, "synthetic", "nvme0n1")
        assert not [name for name, row in by_name.items() if row["deviation"] and row["settable"]]
        assert "CPU governor: set to performance (was powersave (3), performance (1))" in sentences
        assert (
            "CPU idle states: set to POLL, C1 (exit up to 2 µs) (was POLL, C1, C1E, C6 (exit up to 133 µs))"
            in sentences
        )
        assert "Swap: set to no swap (was /no/swap (8191 MiB, unused))" in sentences
        assert "Update timers: set to none active (was apt-daily.timer)" in sentences
        assert any(
            text.startswith("Other timers: still backup.timer, wanted none active: drivelab does not set it here")
            for text in sentences
        )
        assert (machine.sys_root.parent / "timers").read_text() == "backup.timer\n"
    assert contents(machine) == before
    assert temporary.remembered() == []


def test_used_swap_stays_unchanged(build: Build, run_folder: Path) -> None:
    swaps = "Filename Type Size Used Priority\n/no/swap partition 8388604 512 -2\n/no/other file 1024 0 -3"
    machine = build({**VM, "proc/swaps": swaps})
    assert rows(machine, "synthetic")["Swap"]["settable"] is False
    with Temporary("host").claim() as temporary:
        sentences = apply("synthetic", [], temporary, machine)
        assert next(text for text in sentences if "Swap" in text).startswith(
            "Swap: still /no/swap (8191 MiB, 1 MiB used)"
        )
        assert "/no/swap" in (machine.proc_root / "swaps").read_text()


def test_a_file_that_refuses_writes_is_reported(
    build: Build, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = build(SERVER)
    policy = machine.sys_root / "module/pcie_aspm/parameters/policy"

    def refuse(change: Undo) -> str | None:
        return f"{policy} takes nothing (EPERM)" if getattr(change, "path", "") == str(policy) else perform(change)

    monkeypatch.setattr(module, "perform", refuse)
    with Temporary("host").claim() as temporary:
        sentences = apply("synthetic", [], temporary, machine)
    assert any(text.startswith("PCIe ASPM policy: still default") and "(EPERM)" in text for text in sentences)
    assert temporary.remembered() == []


def test_file_without_write_permission_is_not_settable(build: Build, run_folder: Path) -> None:
    machine = build(SERVER)
    policy = machine.sys_root / "module/pcie_aspm/parameters/policy"
    policy.chmod(0o444)
    assert rows(machine, "synthetic")["PCIe ASPM policy"]["settable"] is False
    with Temporary("host").claim() as temporary:
        apply("synthetic", [], temporary, machine)
        assert not [name for name in temporary.remembered() if "ASPM" in name]
    assert policy.read_text().startswith("[default]")


def test_a_setting_that_depends_on_another_is_retried(
    build: Build, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("scaling_governor", "energy_performance_preference")
    machine = build({**SERVER, **{f"{POLICY}{cpu}/{name}": "performance" for cpu in range(4) for name in names}})
    attempts: list[str] = []

    def busy_until_powersave(change: Undo) -> str | None:
        if not isinstance(change, Write):
            return perform(change)
        attempts.append(change.path)
        governor = Path(change.path).with_name("scaling_governor")
        if change.path.endswith("scaling_governor") and attempts.count(change.path) == 1:
            return "busy"  # simulates a wrong order of dependent settings
        if change.path.endswith("preference") and governor.read_text() == "performance\n":
            return "busy"
        return perform(change)

    monkeypatch.setattr(module, "perform", busy_until_powersave)
    before = contents(machine)
    with Temporary("host").claim() as temporary:
        sentences = apply("real-world", [], temporary, machine)
        assert "CPU energy preference: set to balance_performance (was performance)" in sentences
    assert contents(machine) == before


def test_without_root_nothing_is_set(build: Build, run_folder: Path) -> None:
    machine = build(SERVER)
    plain = replace(machine, privileged=False)
    before = contents(machine)
    assert apply("synthetic", ["nvme0n1"], Temporary("host"), plain) == [
        "host settings are unchanged: changing them needs root"
    ]
    assert contents(machine) == before
    assert not any(row["settable"] for row in snapshot(["nvme0n1"], "synthetic", plain))


@pytest.mark.parametrize("change", [True, False])
def test_a_study_sets_only_its_scenario_and_restores_changes_by_hand(
    build: Build, run_folder: Path, change: bool
) -> None:
    machine = build(SERVER)
    before = contents(machine)
    sentences: list[str] = []
    with for_study("synthetic", ["nvme0n1"], change=change, say=sentences.append, machine=machine):
        assert (contents(machine) != before) == change
    assert contents(machine) == before
    assert any("CPU governor: set to performance" in text for text in sentences) == change
    temporary = Temporary("host")
    temporary.claim_by_hand()
    apply("synthetic", ["nvme0n1"], temporary, machine)
    with for_study("synthetic", [], change=False, say=sentences.append, machine=machine):
        assert contents(machine) != before
    assert contents(machine) == before


def test_a_study_without_root_continues_and_reports_it(build: Build, run_folder: Path) -> None:
    machine = replace(build(SERVER), privileged=False)
    sentences: list[str] = []
    with for_study("synthetic", [], change=False, say=sentences.append, machine=machine):
        assert sentences == []
    with for_study("synthetic", [], change=True, say=sentences.append, machine=machine):
        assert sentences == ["host settings are unchanged: changing them needs root"]
    assert not run_folder.exists()


def contents(machine: Machine) -> dict[str, str | None]:
    """Return the value of every file of a simulated host."""
    root = machine.sys_root.parent
    ignored = ("timers.new", "swaps.new")
    return {
        str(path.relative_to(root)): current_value(path)
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name not in ignored
    }


VALUES = st.sampled_from(
    ["0", "1", "on", "off", "auto", "none", "performance", "powersave", "balanced", "default", "schedutil", "3600000",
     "[always] madvise never", "none [bfq] mq-deadline", "Vulnerable", "any", "", "a b"]
)  # fmt: skip
FILES = sorted(name for name in {**LAPTOP, **SERVER} if name.startswith(("sys/", "proc/sys/")))


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from(FILES), VALUES),
    st.lists(st.sampled_from(["real-world", "synthetic"]), min_size=1, max_size=3),
)
def test_every_host_gets_all_its_settings_back(files: dict[str, str], scenarios: list[str]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIVELAB_RUN_DIR", f"{folder}/run")
        lay_out(Path(folder) / "host", {"proc/swaps": "Filename", **files})
        machine = machine_of(Path(folder) / "host")
        drives = [name for name, path in BLOCK_DEVICES.items() if (Path(folder) / "host" / path).is_dir()]
        before = contents(machine)
        temporary = Temporary("host")
        with temporary.claim():
            for scenario in scenarios:
                apply(scenario, drives, temporary, machine)
                left = [row for row in snapshot(drives, scenario, machine) if row["deviation"] and row["settable"]]
                assert left == []
        assert contents(machine) == before
        assert temporary.remembered() == []
