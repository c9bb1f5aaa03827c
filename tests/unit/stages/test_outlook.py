"""What `drivelab plan` says beforehand, against what the virtual clock then does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mini_project import STUDY

from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.stages.ceilings import fastest_mib_s
from drivelab.stages.commands import fio_commands
from drivelab.stages.condition import precondition, purge
from drivelab.stages.estimate import Estimate, Trace, assumed_mib_s, estimate
from drivelab.stages.measure import measure
from drivelab.stages.outlook import Outlook, outlook
from drivelab.stages.planning import Campaign
from drivelab.virtual.clock import VirtualClockDrive
from drivelab.virtual.kept import KEPT_DRIVES
from drivelab.virtual.model import DriveModel


@pytest.fixture
def campaign(project: Path) -> Campaign:
    Path("config/mini.yaml").write_text(STUDY)
    return Campaign.load("config/mini.yaml")


def row(**change: object) -> Outlook:
    facts: dict[str, object] = {
        "drive": "a", "device": "/dev/nvme0n1", "serial": "S1", "virtual": False, "model": "Maker 1",
        "capacity_bytes": 2 * 10**12, "holds": ("gpt on nvme0n1", "ext4 'data' on nvme0n1p1"), "to_do": 3,
        "estimate": Estimate(3600, 7200, 4e12, 8e12), "bandwidth_mib_s": 2000.0, "ceiling_mib_s": None,
        "endurance_bytes": 600e12,
    }  # fmt: skip
    return Outlook(**{**facts, **change})  # type: ignore[arg-type]


def test_what_is_lost_and_worn_is_said() -> None:
    text = "\n".join(row().lines())
    assert "Maker 1, serial S1, 1.82 TiB, /dev/nvme0n1" in text
    assert "will be erased: gpt on nvme0n1, ext4 'data' on nvme0n1p1" in text
    assert "will be written: 3.64 TiB to 7.28 TiB, 0.67 % to 1.3 % of its rated 600 TB" in text
    assert "will take: 1 h 00 min to 2 h 00 min at an assumed 2000 MiB/s" in text
    assert "endurance is not in the drive sheet" in "\n".join(row(endurance_bytes=None).lines())
    little = "\n".join(row(estimate=Estimate(1, 1, 1e6, 1e10)).lines())
    assert "under 0.01 % of its rated 600 TB" in little
    assert row(to_do=0).lines()[0].endswith("nothing will be written")


def test_what_the_most_rests_on_is_said() -> None:
    told = "\n".join(row(ceiling_mib_s=3720.0).lines())
    assert "600 TB (upper bound if its cells write at 3,720 MiB/s all the time, the limit of its link)" in told
    away = row(ceiling_mib_s=14000.0, attached=False)
    premises = (
        "if its capacity is 1.82 TiB; upper bound if its cells write at 14,000 MiB/s all the time, the limit of any link"
    )
    assert f"600 TB ({premises})" in "\n".join(away.lines())
    assert away.assumption == f" ({premises.replace('; upper bound if', ' and')})"
    for nothing in (row(), row(ceiling_mib_s=14000.0, virtual=True)):
        assert "upper bound if" not in "\n".join(nothing.lines())
        assert nothing.assumption == ""


def test_the_ceiling_is_that_of_cells_alone(project: Path) -> None:
    sheet = Path("config/drives.tsv")
    sheet.write_text(sheet.read_text() + "real\t/dev/disk/by-id/nvme-none\tS1\tyes\t\n")

    def ceiling_mib_s(measurement: str) -> float | None:
        Path("config/mini.yaml").write_text(
            "name: mini\ndrives: [real]\ntraces: {a: {shipped: sqlite-inserts}}\n"
            f"measurements: [{{protocol: {measurement}}}]\n"
        )
        (one,) = outlook(Campaign.load("config/mini.yaml"))
        return one.ceiling_mib_s

    assert ceiling_mib_s("pts-iops") == 14000
    assert ceiling_mib_s("trace-replay, trace: a") is None, "passes are not more on a faster link"


def test_a_drive_of_the_virtual_clock(campaign: Campaign) -> None:
    rows = outlook(campaign)
    assert [one.drive for one in rows] == ["op7", "op28"]
    assert all(one.virtual and one.to_do == 3 for one in rows)
    assert "in simulated time" in rows[0].lines()[-1]


def test_what_is_written_lies_within_the_estimate(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-iops")
    span = estimate(plan, campaign.capacity_bytes(plan), assumed_mib_s(plan, None), ())
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    measure(plan, Path("conditioned.json"))
    seals = [line["seal"]["wear"]["sectors_written"] for line in read_journal(plan.recording_path)
             if line["event"] == "seal"]  # fmt: skip
    assert (seals[-1] - seals[0]) * 512 == span.least_bytes, "the fill is known exactly"
    assert span.least_bytes < span.most_bytes


def test_every_cell_has_its_command(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-iops")
    commands = list(fio_commands(plan, "/dev/x", 64 << 20, 4096))
    purposes = [purpose for purpose, _ in commands]
    assert purposes[0] == "preconditioning"
    assert len(commands) == 1 + len(plan.subject["measure"][0]["loop"]["cells"])
    assert all(command.startswith("fio --name=cell --filename=/dev/x ") for _, command in commands)
    seeds = {re.search(r"--randseed=(\d+)", command)[1] for _, command in commands}  # type: ignore[index]
    assert len(seeds) == len(commands)


def test_the_commands_are_those_that_are_run(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-write-saturation")
    (_, command), *_ = fio_commands(plan, "/dev/x", 64 << 20, 4096)
    assert "--status-interval=1 " in command
    assert "--runtime=5000ms" in command
    assert f"--randseed={plan.seed('cells/0-soak-part1')}" in command


def test_a_replay_is_named(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "trace-replay")
    assert [purpose for purpose, _ in fio_commands(plan, "/dev/x", 64 << 20, 4096)][-1] == "replay of sqlite"


TWO = (Trace(10.0, 5 << 20, 8 << 20), Trace(20.0, 3 << 20, 2 << 20))
MIB_S = 100.0


def made(*measure: dict[str, Any], **change: Any) -> Plan:
    """With nothing but these steps."""
    subject = {
        "drive": {"serial": "S1", "over_provisioning": 0.25},
        "class": {"active_range": 1.0},
        "clock": "wall",
        "condition": {"purge": "none"},
        "measure": measure,
        **change,
    }
    return Plan(subject, {"drive": "a", "measurement": "m", "run": 1})


def span(
    *measure: dict[str, Any], traces: tuple[Trace, ...] = TWO, capacity_bytes: int = 64 << 20, **change: Any
) -> Estimate:
    """Of a plan with nothing but these steps, at 100 MiB/s."""
    return estimate(made(*measure, **change), capacity_bytes, MIB_S, traces)


def replay(timing: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"choice": {"timing": timing}, "cold_runs": 1, "until": {"passes": 3}, "prefill": "none"}
    return {"replay": {**choice, **fields}}


def test_passes_over_a_set_are_known_exactly() -> None:
    found = span(replay({"mode": "original"}))
    assert found == Estimate(4 * 30.0, 4 * 30.0, 4 * (8 << 20), 4 * (8 << 20))


def test_repeats_until_they_agree_are_three_to_seven() -> None:
    found = span(replay({"mode": "original"}, until={"threshold": 0.05, "metric": "score"}))
    assert found == Estimate(4 * 30.0, 8 * 30.0, 4 * (8 << 20), 8 * (8 << 20))


def test_the_timing_decides_how_long_a_replay_takes() -> None:
    assert span(replay({"mode": "scaled", "factor": 0.5})).least_s == 4 * 15.0
    for mode in ("asap", "idle-capped"):
        found = span(replay({"mode": mode}))
        both = (max(5, 8) + max(3, 2)) / MIB_S
        assert found.least_s == pytest.approx(4 * both), "no sooner than the link allows, which is full duplex"
        assert found.most_s == 4 * 30.0
        assert found.least_bytes == found.most_bytes == 4 * (8 << 20)


def test_what_is_read_is_written_once_beforehand() -> None:
    plain, filled = (span(replay({"mode": "original"}, prefill=one)) for one in ("none", "footprint"))
    assert filled.least_bytes == plain.least_bytes
    assert filled.most_bytes == plain.most_bytes + (10 << 20)
    assert filled.most_s == pytest.approx(plain.most_s + 0.1)
    small = span(replay({"mode": "original"}, prefill="footprint"), capacity_bytes=4 << 20)
    assert small.most_bytes == plain.most_bytes + (4 << 20), "no block is written twice"


def test_idle_takes_time_and_writes_nothing() -> None:
    assert span({"idle": {"time_s": 300.0}}, {"idle": {"time_s": 60.0}}) == Estimate(360.0, 360.0, 0.0, 0.0)


def streams(**fields: Any) -> dict[str, Any]:
    one = {"kind": "composite", "most": 9, "threads": [1], "queue_depth": [1], "runtime_s": 10.0}
    return {"loop": {"streams": {**one, **fields}, "until": {"window": 5, "max_rounds": 25}}}


def test_streams_are_reckoned_without_their_trace() -> None:
    composite = span(streams())
    assert composite.least_s == pytest.approx(5 * 10.3)
    assert composite.most_s == pytest.approx(25 * 10.3)
    assert (composite.least_bytes, composite.most_bytes) == (0, pytest.approx(25 * 10 * MIB_S * 2**20))
    sweep = span(streams(threads=[4, 1], queue_depth=[8, 2, 1]))
    assert sweep.most_s == pytest.approx(6 * composite.most_s)
    assert sweep.least_s == pytest.approx(6 * composite.least_s)
    each = span(streams(kind="individual"))
    assert each.most_s == pytest.approx(9 * composite.most_s)
    assert each.least_s == pytest.approx(composite.least_s)


def test_phases_add_up(project: Path) -> None:
    """Consistency: soaks of 220 + 225 minutes, 25 idle, and 18 passes over the set."""
    Path("config/mine.yaml").write_text(
        "name: mine\nclock: virtual\ndrives: [op7]\ntraces: {a: {shipped: sqlite-inserts}, b: {shipped: boot-read}}\n"
        "measurements: [{protocol: trace-consistency, traces: [b, a]}]\n"
    )
    found = Campaign.load("config/mine.yaml")
    plan = found.plans[0].plan
    traces = found.traces_of(plan)
    assert [one.write_bytes for one in traces] == [0, 30851072]
    total = estimate(plan, found.capacity_bytes(plan), assumed_mib_s(plan, None), traces)
    conditioning_s = 30 + 2 * (64 << 20) / (assumed_mib_s(plan, None) * 2**20)
    set_s = sum(one.duration_s for one in traces)
    drain_s = 445 * 10 * (16 << 20) / (assumed_mib_s(plan, None) * 2**20)
    most_s = conditioning_s + 1 + 60 * (220 + 225 + 25) + 18 * set_s
    assert most_s < total.most_s < most_s + drain_s
    assert total.least_bytes == 2 * (64 << 20) + 18 * 30851072


def test_what_is_no_command_is_told_in_words(project: Path) -> None:
    Path("config/mine.yaml").write_text(
        "name: mine\nclock: virtual\ndrives: [op7]\ntraces: {a: {shipped: sqlite-inserts}, b: {shipped: boot-read}}\n"
        "measurements:\n  - {protocol: trace-consistency, scale: demo, traces: [b, a]}\n"
        "  - {protocol: rwsw-sweep, scale: demo, trace: a}\n  - {protocol: trace-replay-asap, trace: b}\n"
    )
    consistency, sweep, asap = (
        list(fio_commands(one.plan, "/dev/x", 64 << 20, 4096)) for one in Campaign.load("config/mine.yaml").plans
    )
    assert len(consistency) == 1 + 2 * 7
    assert "--bsrange=4096-1048576" in consistency[1][1]
    assert consistency[2] == (
        "replay of b, a",
        "the native engine, idle capped at 10 ms; cold runs: 0, passes: 1; phase degradation, 1",
    )
    assert consistency[-2] == ("idle", "no I/O for 8 s")
    assert sweep[-1][0] == "round 1, streams of a"
    assert sweep[-1][1].endswith("at T4Q8, T4Q1, T1Q8, T1Q1")
    assert "depth; cold runs: 1, warm runs: 3 to 7" in asap[-1][1]


CELL = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 10.0}  # fmt: skip
MIB = 1 << 20
DRAIN_S = 10 * 4096 / (MIB_S * MIB)
"""Of one page in flight, at a tenth of what is assumed."""


def loop(*cells: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"loop": {"cells": [{**CELL, **one} for one in cells or ({},)], "until": {"rounds": 5}, **fields}}


def test_a_fixed_number_of_rounds_is_known_exactly() -> None:
    found = span(loop({}, {"runtime_s": 2.0, "read_share": 100}))
    assert found.least_s == pytest.approx(5 * 12.6)
    assert found.most_s == pytest.approx(5 * (12.6 + 2 * DRAIN_S))
    assert (found.least_bytes, found.most_bytes) == (0, pytest.approx(5 * (10 * MIB_S * MIB + 4096)))


def test_rounds_until_they_agree_are_three_to_seven_and_cold_ones_more() -> None:
    found = span(loop(until={"threshold": 0.05, "metric": "iops"}, cold_rounds=2))
    assert (found.least_s, found.most_s) == (pytest.approx(5 * 10.3), pytest.approx(9 * (10.3 + DRAIN_S)))


def test_pauses_take_time_in_which_fio_starts() -> None:
    assert span(loop(pause_s=5.0)).most_s == pytest.approx(5 * (15.0 + DRAIN_S))
    assert span(loop(duty_cycle=0.25)).least_s == pytest.approx(5 * 40.0)
    assert span(loop(pause_s=0.1)).least_s == pytest.approx(5 * 10.3)
    assert span(loop(pause_s=5.0)).most_bytes == span(loop()).most_bytes


@pytest.mark.parametrize(
    ("cell", "mib_s", "in_flight"),
    [
        ({"rate_iops": 256.0}, 1.0, 4096),
        ({"rate_iops": 1e9}, MIB_S, 4096),
        ({"threads": 4, "queue_depth": 64}, MIB_S, MIB),
        ({"read_share": 50}, MIB_S, 4096),
        ({"rate_iops": 256.0, "block_size_max_bytes": 12288}, 2.0, 12288),
        ({"rate_iops": 64.0, "block_sizes": [{"block_size_bytes": 4096, "share": 0.5},
                                             {"block_size_bytes": 28672, "share": 0.5}]}, 1.0, 28672),
        ({"block_sizes": [{"block_size_bytes": 4096, "share": 0.5}, {"block_size_bytes": 28672, "share": 0.5}]},
         MIB_S, 28672),
        ({"read_share": 100, "beside": {**CELL, "read_share": 0, "runtime_s": None}}, MIB_S, 4096),
        ({"beside": {**CELL, "read_share": 100, "runtime_s": None}}, MIB_S, 4096),
        ({"read_share": 100}, 0.0, 0),
    ],
)  # fmt: skip
def test_what_a_cell_writes_is_bounded_by_link_and_rate(cell: dict[str, Any], mib_s: float, in_flight: int) -> None:
    assert span(loop(cell)).most_bytes == pytest.approx(5 * (10 * mib_s * MIB + in_flight))


def test_writes_of_a_mix_may_be_more_than_their_share() -> None:
    """Five standard deviations of a binomial distribution, as each I/O is drawn."""
    ios = 256 * 10 + 1
    found = span(loop({"rate_iops": 256.0, "read_share": 70}))
    assert found.most_bytes == pytest.approx(5 * 4096 * (0.3 * ios + 5 * (0.3 * 0.7 * ios) ** 0.5))


POINT = {"name": "mid", "step": 0, "of": {"read_share": 0}, "response_time_us": 5000.0}


def bare(**change: Any) -> dict[str, Any]:
    """A cell whose threads and depth a point gives."""
    return {key: value for key, value in {**CELL, **change}.items() if key not in ("threads", "queue_depth")}


def test_a_point_changes_neither_time_nor_bytes() -> None:
    fields = {"cells": [bare()], "until": {"rounds": 5}, "point": POINT}
    assert span({"loop": fields}) == span(loop())


def soak(cell: dict[str, Any] | None = None, **until: Any) -> dict[str, Any]:
    return {"soak": {"cell": {**bare(), "runtime_s": None, "slice_s": 1.0, **(cell or {})}, "until": until}}


STEADY = {"every_s": 60.0, "window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "metric": "iops"}


def test_a_soak_that_is_steady_at_once_lasts_a_window() -> None:
    found = span(soak(time_s=3600.0, steady_state=STEADY))
    assert (found.least_s, found.most_s) == (300.0, pytest.approx(3600.0 + DRAIN_S))
    assert (found.least_bytes, found.most_bytes) == (0, pytest.approx(3600 * MIB_S * MIB + 4096))
    volume = span(soak(capacity_multiple=4.0, steady_state=STEADY))
    assert volume == Estimate(pytest.approx(2.56), pytest.approx(25.6), 0.0, 256 * MIB)  # type: ignore[arg-type]
    assert span(soak(capacity_multiple=4.0)).least_bytes == 256 * MIB


def test_a_limit_of_iops_lengthens_a_volume_and_bounds_a_time() -> None:
    slow = {"rate_iops": 256.0}
    assert span(soak(slow, capacity_multiple=4.0)).least_s == span(soak(slow, capacity_multiple=4.0)).most_s == 256.0
    assert span(soak(slow, time_s=60.0)).most_bytes == 60 * MIB + 4096


def test_a_volume_of_reads_and_writes_is_reached_no_sooner_than_both_directions_allow() -> None:
    """At the most at twice the fastest rate, which is not the assumed one."""
    half = made(soak({"read_share": 50}, capacity_multiple=4.0))
    found = estimate(half, 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert found.least_s == pytest.approx(256 / (2 * 4 * MIB_S))
    assert found.most_s == pytest.approx(10 * 256 / MIB_S)
    assert found.least_bytes < 128 * MIB < found.most_bytes < 1.02 * 128 * MIB
    reads = estimate(made(soak({"read_share": 100}, capacity_multiple=4.0)), 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert (reads.least_s, reads.most_bytes) == (pytest.approx(256 / (4 * MIB_S)), 0)
    window = span(soak({"read_share": 50}, capacity_multiple=4.0, time_s=1.5))
    assert (window.least_s, window.most_s) == (pytest.approx(1.28), pytest.approx(1.5 + DRAIN_S))


def test_a_volume_that_is_no_whole_number_of_ios_for_each_thread_may_be_missed_by_one_of_each() -> None:
    found = span(soak({"threads": 3, "queue_depth": 1, "block_size_bytes": MIB}, capacity_multiple=1.0))
    assert (found.least_bytes, found.most_bytes) == (61 * MIB, 67 * MIB)


def test_fills_and_rest_add_up() -> None:
    one = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 8}
    fill = [{**one, "capacity_multiple": 2.0, "range_share": 0.5}, {**one, "raw_capacity_multiple": 2.0}]
    found = span(condition={"purge": "none", "fill": fill, "rest_s": 600.0})
    written = (64 + 2 * 1.25 * 64) * MIB
    assert found.least_bytes == found.most_bytes == written
    assert found.least_s == found.most_s == pytest.approx(600 + written / (MIB_S * MIB))


def test_a_random_fill_may_take_ten_times_as_long_and_none_is_faster_than_the_link() -> None:
    one = {"pattern": "random", "block_size_bytes": 4096, "queue_depth": 8, "capacity_multiple": 2.0}
    plan = made(condition={"purge": "none", "fill": one})
    found = estimate(plan, 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert (found.least_s, found.most_s) == (pytest.approx(0.32), pytest.approx(12.8))
    assert found.least_bytes == found.most_bytes == 128 * MIB


def virtual(*measure: dict[str, Any], **model: Any) -> Plan:
    """Of a virtual drive on the virtual clock."""
    mapping = {"serial": "V", "capacity": "64MiB", "over_provisioning": "28%", **model}
    return made(*measure, drive={"serial": "V", "virtual": mapping}, clock="virtual")


def test_the_link_bounds_a_real_drive_and_the_bus_a_virtual_one() -> None:
    assert fastest_mib_s(made(), "pcie", "16.0 GT/s PCIe x4") == 4 * 1860
    assert fastest_mib_s(made(), "pcie", None) == 14000
    assert fastest_mib_s(made(), "sata", None) == 560
    assert fastest_mib_s(virtual(transfer_us=20), None, None) == pytest.approx(4096 / 20e-6 / MIB)
    slow = virtual(transfer_us=20, program_us=5000)
    assert fastest_mib_s(slow, None, None) > 10 * assumed_mib_s(slow, None), "caches take in more than flash"


def test_reads_share_the_bus_of_a_virtual_drive_and_its_controller_takes_its_time() -> None:
    def most(cell: dict[str, Any], **model: Any) -> float:
        plan = virtual(loop(cell), **model)
        return estimate(plan, 64 * MIB, 1.0, (), fastest_mib_s(plan, None, None)).most_bytes / 5

    large = {"block_size_bytes": MIB}
    assert most(large, transfer_us=20) == pytest.approx(10 * 4096 / 20e-6 + MIB)
    assert most({}, command_us=100, transfer_us=20) == pytest.approx(10 * 4096 / 100e-6 + 4096)
    half = most({"read_share": 50}, command_us=0, transfer_us=20)
    assert half == pytest.approx(10 * 4096 / 20e-6 / 2, rel=0.02)


def test_on_the_virtual_clock_no_process_has_to_start() -> None:
    plan = virtual(loop({}))
    assert estimate(plan, 64 * MIB, 1.0, ()).least_s == 50.0


@pytest.mark.parametrize(
    "name",
    [
        "crystaldiskmark-default", "iometer-duty-cycle", "pts-cross-stimulus-recovery", "pts-demand-intensity",
        "pts-write-saturation-mixes", "qos-threads-sweep", "sqlio-head-to-head-reads", "stec-alignment",
        "stec-random-write-over-time",
    ],
)  # fmt: skip
def test_a_shipped_protocol_keeps_within_what_was_said(project: Path, name: str) -> None:
    Path("config/mine.yaml").write_text(
        f"name: mine\nclock: virtual\ndrives: [op7-512e]\nmeasurements: [{{protocol: {name}, scale: demo}}]\n"
    )
    campaign = Campaign.load("config/mine.yaml")
    (said,) = (one.estimate for one in outlook(campaign))
    plans = [one.plan for one in campaign.plans]
    model = DriveModel.from_mapping("op7-512e", plans[0].subject["drive"]["virtual"])
    state = Path(plans[0].context["results"]) / KEPT_DRIVES / f"{model.serial}.state"
    taken_us = 0.0
    for plan in plans:
        purge(plan, Path("purged.json"))
        precondition(plan, Path("purged.json"), Path("conditioned.json"))
        measure(plan, Path("conditioned.json"))
        drive = VirtualClockDrive(model, state)
        taken_us += drive.now_us  # which begins anew with each purge
    assert said.least_bytes <= drive.counters()["host_write_bytes"] <= said.most_bytes
    assert said.least_s <= taken_us / 1e6 <= said.most_s


def told(*measure: dict[str, Any], **change: Any) -> list[tuple[str, str]]:
    return list(fio_commands(made(*measure, **change), "/dev/x", 64 << 20, 4096))


def test_pauses_and_cold_rounds_are_told() -> None:
    found = told(loop({}, {"runtime_s": 2.0}, duty_cycle=0.5, cold_rounds=1))
    assert [purpose for purpose, _ in found] == ["cold round 1, RND 4KiB 0/100 T1Q1"] * 2 + ["pause"]
    assert found[-1][1] == "no I/O for 2 s to 10 s after each cell"
    assert told(loop(pause_s=5.0))[-1] == ("pause", "no I/O for 5 s after each cell")


def test_two_workloads_are_one_command() -> None:
    beside = {"pattern": "sequential", "read_share": 100, "block_size_bytes": 131072, "threads": 2, "queue_depth": 3}
    ((_, command),) = told(loop({"beside": beside}))
    first, second = command.split(" --name=beside ")
    assert first.startswith("fio --name=cell --filename=/dev/x ")
    assert "--rw=randwrite" in first
    assert "--rw=read" in second
    assert second.endswith("--output-format=json+")


def test_what_runs_at_a_point_is_told_in_words() -> None:
    steps = [{"loop": {"cells": [bare()], "until": {"rounds": 1}, "point": POINT}}, soak(time_s=60.0)]
    steps[1]["soak"]["point"] = POINT
    words = "the threads and queue depth at which step 1 reaches MID IOPS below 5 ms"
    assert told(*steps) == [("round 1, RND 4KiB 0/100", words), ("soak, RND 4KiB 0/100", words)]


def test_what_is_done_besides_is_told_in_words() -> None:
    condition = {"purge": "none", "rest_s": 600.0}
    application = {"application": {"cold_runs": 1, "until": {"threshold": 0.05, "metric": "duration_s"}}}
    found = told(application, condition=condition, simultaneous=["S1", "S2"], application={"name": "sqlite"})
    assert found == [
        ("rest", "flush the drive's cache, then no I/O for 10 min 00 s"),
        ("at the same time", "the drives with the serials S1, S2 start each step together"),
        ("application sqlite", "on a file system on the drive; cold runs: 1, warm runs: 3 to 7"),
    ]


def test_what_an_application_takes_is_said_to_be_unknown() -> None:
    assert row(applications=("sqlite",)).lines()[-1] == (
        "    not known beforehand: time and writes of the application sqlite"
    )
