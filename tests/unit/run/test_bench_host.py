"""What `drivelab bench-host` shows and advises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drivelab.cli.main import main
from drivelab.cli.start.bench_host import report
from drivelab.core.errors import UserError
from drivelab.drives.identity import attached_name
from drivelab.fio.null_target import null_block_device
from drivelab.host.machine import Machine
from drivelab.plan.cell import Cell
from drivelab.run import bench_host, host_ceiling
from drivelab.run.bench_host import advice, interrupts_of, limits_of

QUIET = {"p50": 5.0, "p95": 8.0, "p99": 20.0, "max": 90.0}
GOVERNOR = {"name": "CPU governor", "state": "powersave", "wanted": "performance", "deviation": True, "how": "x"}
PLACE = {"drive": "nvme0n1", "queues": 4, "interrupt_cpus": [0, 1, 2, 3], "node": None, "near_cpus": [],
         "cpus": [0, 1, 2, 3]}  # fmt: skip


def test_a_host_that_needs_no_change_has_no_advice() -> None:
    assert list(advice(QUIET, [{**GOVERNOR, "deviation": False}], [PLACE], [])) == []
    assert list(advice(None, [{**GOVERNOR, "deviation": None}], [], [])) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"interrupt_cpus": [2]}, "nvme0n1: CPU 2 serves the interrupts of all 4 queues"),
        ({"interrupt_cpus": [2], "queues": 1}, "nvme0n1: has one queue"),
        ({"near_cpus": [2, 3], "node": 1}, "nvme0n1: is on NUMA node 1. CPUs of other nodes reach it more slowly."),
    ],
)
def test_advice_on_interrupts(changed: dict[str, Any], words: str) -> None:
    (sentence,) = advice(QUIET, [], [{**PLACE, **changed}], [])
    assert sentence.startswith(words)


def test_advice_on_settings_and_wake_ups() -> None:
    late, governor = advice({**QUIET, "p99": 2500.0}, [GOVERNOR], [PLACE], [])
    assert late.startswith("A sleeping thread wakes up 2,500 µs late or more in 1 of 100 cases.")
    assert governor == "CPU governor: powersave; wanted: performance. To change it: x."


def test_advice_on_a_host_without_a_null_blk_device(tmp_path: Path) -> None:
    target, missing = null_block_device([], tmp_path)
    assert target is None
    (sentence,) = advice(QUIET, [], [PLACE], missing)
    assert "'modprobe null_blk nr_devices=1 irqmode=0 submit_queues=$(nproc --all)'" in sentence
    assert list(advice(QUIET, [], [PLACE], ["/dev/nullb0: it is measured itself"])) == []


def test_limits_are_said() -> None:
    virtual = {"name": "Virtualisation", "state": "virtual machine (x)", "deviation": True}
    words = " ".join(limits_of(2, 40.0, [virtual], ["there is none"], "not permitted"))
    for part in ("virtual machine (x)", "gives 2 CPUs", "used 40 %", "there is none", "those of libaio"):
        assert part in words
    assert len(list(limits_of(8, 1.0, [], [], None))) == 1, "a null target is never quite a drive"


def test_interrupts_of_a_drive_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/pci0/nvme0"
    for path in ("nvme0n1/mq/0", "nvme0n1/mq/1", "msi_irqs/31", "msi_irqs/32"):
        (folder / path).mkdir(parents=True)
    (folder / "numa_node").write_text("-1")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/nvme0n1").symlink_to(folder / "nvme0n1")
    for number in (31, 32):
        (tmp_path / f"proc/irq/{number}").mkdir(parents=True)
        (tmp_path / f"proc/irq/{number}/effective_affinity_list").write_text("0")
    place = interrupts_of("nvme0n1", Machine(tmp_path / "sys", tmp_path / "proc"))
    assert (place["queues"], place["interrupt_cpus"], place["node"]) == (2, [0], None)


def test_an_unknown_drive_is_refused() -> None:
    with pytest.raises(UserError, match="there is no block device nosuch; run lsblk"):
        attached_name("/dev/nosuch", "bench-host")


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench_host, "typical_loads", lambda cpus: [Cell("random", 100, 4096, 1, 1, 1.0)])
    monkeypatch.setattr(host_ceiling, "UNDISTURBED", 0.0)
    assert main(["bench-host", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (ceiling,) = result["ceilings"]
    assert ceiling["at_most_iops"] > 0
    lines = report(result)
    assert lines[1].split() == ["RND", "4KiB", "100/0", "T1Q1", *ceiling["words"].split()]
    assert "What to change" in lines
