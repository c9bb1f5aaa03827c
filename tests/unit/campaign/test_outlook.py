"""What a plan estimates, compared with what the virtual clock does; the table of outcomes has the estimates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mini_project import STUDY
from stages import lines, run_stages

from drivelab.campaign.ceilings import fastest_mib_s
from drivelab.campaign.commands import fio_commands
from drivelab.campaign.estimate import assumed_mib_s, estimate
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.subjects import capacity_bytes_of
from drivelab.plan.plan import Plan


@pytest.fixture
def campaign(project: Path) -> Campaign:
    Path("config/mini.yaml").write_text(STUDY)
    return Campaign.load("config/mini.yaml")


def test_the_ceiling_applies_only_to_cells(project: Path) -> None:
    sheet = Path("config/drives.tsv")
    sheet.write_text(sheet.read_text() + "real\t/dev/disk/by-id/nvme-none\tS1\tyes\t\n")

    def ceiling_mib_s(measurement: str) -> float | None:
        Path("config/mini.yaml").write_text(
            "name: mini\ndrives: [real]\ntraces: {a: {shipped: sqlite-inserts}}\n"
            f"measurements: [{{protocol: {measurement}}}]\n"
        )
        (drive,) = outlook(Campaign.load("config/mini.yaml"))
        return drive.ceiling_mib_s

    assert ceiling_mib_s("pts-iops") == 14000
    assert ceiling_mib_s("trace-replay, trace: a") is None, "a faster link does not add passes"


def test_a_drive_on_the_virtual_clock(campaign: Campaign) -> None:
    rows = outlook(campaign)
    assert [row.drive for row in rows] == ["op7", "op28"]
    assert all(row.virtual and row.to_do == 3 for row in rows)
    assert "in simulated time" in rows[0].lines()[-1]


def test_the_written_bytes_lie_within_the_estimate(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "pts-iops")
    span = estimate(plan, capacity_bytes_of(plan), assumed_mib_s(plan, None), ())
    run_stages(plan)
    seals = [line["seal"]["wear"]["sectors_written"] for line in lines(plan, "seal")]
    assert (seals[-1] - seals[0]) * 512 == span.least_bytes, "the fill is estimated exactly"
    assert span.least_bytes < span.most_bytes


def test_every_cell_has_its_command(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "pts-iops")
    commands = list(fio_commands(plan, "/dev/x", 64 << 20, 4096))
    purposes = [purpose for purpose, _ in commands]
    assert purposes[0] == "preconditioning"
    assert purposes[1].startswith("step 1, loop: ")
    texts = [command for _, command in commands if command]
    assert len(texts) == 1 + len(plan.subject["measure"][0]["loop"]["cells"])
    assert all(command.startswith("fio --name=cell --filename=/dev/x ") for command in texts)
    seeds = {re.search(r"--randseed=(\d+)", command)[1] for command in texts}  # type: ignore[index]
    assert len(seeds) == len(texts)


def test_the_listed_commands_are_the_executed_ones(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "pts-write-saturation")
    command = next(text for purpose, text in fio_commands(plan, "/dev/x", 64 << 20, 4096) if "soak, " in purpose)
    assert "--status-interval=1 " in command
    assert "--runtime=5000ms" in command
    assert f"--randseed={plan.seed('cells/0-soak-part1')}" in command


def test_a_replay_is_named(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "trace-replay")
    purposes = [purpose for purpose, _ in fio_commands(plan, "/dev/x", 64 << 20, 4096)]
    assert purposes[0] == "traces: sqlite"
    assert purposes[-1].startswith("step 1, replay: ")


def made(*measure: dict[str, Any], **change: Any) -> Plan:
    """Return a plan with only these steps."""
    subject = {
        "drive": {"serial": "S1", "over_provisioning": 0.25},
        "class": {"active_range": 1.0},
        "clock": "wall",
        "condition": {"purge": "none"},
        "measure": measure,
        **change,
    }
    return Plan(subject, {"drive": "a", "measurement": "m", "run": 1})


def test_phases_add_up(project: Path) -> None:
    """Trace consistency: soaks of 220 + 225 minutes, 25 minutes of idle time, and 18 passes over the set."""
    Path("config/mine.yaml").write_text(
        "name: mine\nclock: virtual\ndrives: [op7-512e]\n"
        "traces: {a: {shipped: sqlite-inserts}, b: {shipped: boot-read}}\n"
        "measurements: [{protocol: trace-consistency, traces: [b, a]}]\n"
    )
    campaign = Campaign.load("config/mine.yaml")
    plan = campaign.plans[0].plan
    traces = campaign.traces.of(plan)
    assert [trace.write_bytes for trace in traces] == [0, 30851072]
    total = estimate(plan, capacity_bytes_of(plan), assumed_mib_s(plan, None), traces)
    conditioning_s = 30 + 2 * (64 << 20) / (assumed_mib_s(plan, None) * 2**20)
    set_s = sum(trace.duration_s for trace in traces)
    drain_s = 445 * 10 * (16 << 20) / (assumed_mib_s(plan, None) * 2**20)
    most_s = conditioning_s + 1 + 60 * (220 + 225 + 25) + 18 * set_s
    assert most_s < total.most_s < most_s + drain_s
    assert total.least_bytes == 2 * (64 << 20) + 18 * 30851072


def test_steps_without_a_command_are_described(project: Path) -> None:
    Path("config/mine.yaml").write_text(
        "name: mine\nclock: virtual\ndrives: [op7-512e]\n"
        "traces: {a: {shipped: sqlite-inserts}, b: {shipped: boot-read}}\n"
        "measurements:\n  - {protocol: trace-consistency, scale: demo, traces: [b, a]}\n"
        "  - {protocol: rwsw-streams, scale: demo, trace: a}\n  - {protocol: trace-replay-asap, trace: b}\n"
    )
    consistency, streams_, asap = (
        list(fio_commands(planned.plan, "/dev/x", 64 << 20, 4096))
        for planned in Campaign.load("config/mine.yaml").plans
    )
    purposes = [purpose for purpose, _ in consistency]
    assert purposes[0] == "traces: b, a"
    assert "--bsrange=4096-1048576" in consistency[3][1]
    assert purposes[4] == "step 2, [degradation 1s] replay: 1 passes, idle capped at 10 ms"
    assert consistency[-2] == ("step 13, [recovery 8s] idle: 8 s", "")
    assert streams_[-1][0].startswith("step 1, loop: 5 to 25 rounds of each of the trace's 3 most frequent streams")
    assert streams_[-1][1] == "T2Q8"
    assert asap[-1][0].startswith("step 1, replay: 1 cold and 3 to 7 warm runs")


CELL = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 10.0}  # fmt: skip
MIB = 1 << 20


def loop(*cells: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"loop": {"cells": [{**CELL, **cell} for cell in cells or ({},)], "until": {"rounds": 5}, **fields}}


def virtual(*measure: dict[str, Any], **model: Any) -> Plan:
    """Return a plan of a virtual drive on the virtual clock."""
    mapping = {"serial": "V", "capacity": "64MiB", "over_provisioning": "28%", **model}
    return made(*measure, drive={"serial": "V", "virtual": mapping}, clock="virtual")


def test_the_link_bounds_a_real_drive_and_the_bus_a_virtual_one() -> None:
    assert fastest_mib_s(made(), "pcie", "16.0 GT/s PCIe x4") == 4 * 1860
    assert fastest_mib_s(made(), "pcie", None) == 14000
    assert fastest_mib_s(made(), "sata", None) == 560
    assert fastest_mib_s(virtual(transfer_us=20), None, None) == pytest.approx(4096 / 20e-6 / MIB)
    slow = virtual(transfer_us=20, program_us=5000)
    assert fastest_mib_s(slow, None, None) > 10 * assumed_mib_s(slow, None), "caches absorb more than flash"


def test_bus_and_controller_bound_a_virtual_drive() -> None:
    def most(cell: dict[str, Any], **model: Any) -> float:
        plan = virtual(loop(cell), **model)
        return estimate(plan, 64 * MIB, 1.0, (), fastest_mib_s(plan, None, None)).most_bytes / 5

    large = {"block_size_bytes": MIB}
    assert most(large, transfer_us=20) == pytest.approx(10 * 4096 / 20e-6 + MIB)
    assert most({}, command_us=100, transfer_us=20) == pytest.approx(10 * 4096 / 100e-6 + 4096)
    half = most({"read_share": 50}, command_us=0, transfer_us=20)
    assert half == pytest.approx(10 * 4096 / 20e-6 / 2, rel=0.02)


def test_on_the_virtual_clock_no_process_starts() -> None:
    plan = virtual(loop({}))
    assert estimate(plan, 64 * MIB, 1.0, ()).least_s == 50.0
