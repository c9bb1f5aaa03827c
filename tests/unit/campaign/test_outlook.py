"""What `drivelab plan` estimates, compared with what the virtual clock does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mini_project import STUDY

from drivelab.campaign.ceilings import fastest_mib_s
from drivelab.campaign.commands import fio_commands
from drivelab.campaign.estimate import Estimate, Trace, assumed_mib_s, estimate
from drivelab.campaign.outlook import Outlook, outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.subjects import capacity_bytes_of
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure


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


def test_the_outlook_lists_lost_data_and_wear() -> None:
    text = "\n".join(row().lines())
    assert "Maker 1, serial S1, 1.82 TiB, /dev/nvme0n1" in text
    assert "will be erased: gpt on nvme0n1, ext4 'data' on nvme0n1p1" in text
    assert "will be written: 3.64 TiB to 7.28 TiB, 0.67 % to 1.3 % of its rated 600 TB" in text
    assert "will take: 1 h to 2 h at an assumed 2000 MiB/s" in text
    assert "endurance is not in the drive sheet" in "\n".join(row(endurance_bytes=None).lines())
    little = "\n".join(row(estimate=Estimate(1, 1, 1e6, 1e10)).lines())
    assert "under 0.01 % of its rated 600 TB" in little
    assert row(to_do=0).lines()[0].endswith("nothing will be written")


def test_the_outlook_states_its_assumptions() -> None:
    text = "\n".join(row(ceiling_mib_s=3720.0).lines())
    assert "600 TB (upper bound if its cells write at 3,720 MiB/s all the time, the limit of its link)" in text
    away = row(ceiling_mib_s=14000.0, attached=False)
    ceiling = "its cells write at 14,000 MiB/s all the time, the limit of any link"
    premises = f"if its capacity is 1.82 TiB; upper bound if {ceiling}"
    assert f"600 TB ({premises})" in "\n".join(away.lines())
    assert away.assumption == f" ({premises.replace('; upper bound if', ' and')})"
    virtual = row(ceiling_mib_s=205.0, virtual=True)
    assert "(upper bound if its cells write at 205 MiB/s all the time, the limit of its bus)" in "\n".join(
        virtual.lines()
    )
    assert "upper bound if" not in "\n".join(row().lines())
    assert row().assumption == ""


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
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    measure(plan, Path("conditioned.json"))
    seals = [line["seal"]["wear"]["sectors_written"] for line in read_journal(plan.recording_path)
             if line["event"] == "seal"]  # fmt: skip
    assert (seals[-1] - seals[0]) * 512 == span.least_bytes, "the fill is estimated exactly"
    assert span.least_bytes < span.most_bytes


def test_every_cell_has_its_command(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "pts-iops")
    commands = list(fio_commands(plan, "/dev/x", 64 << 20, 4096))
    purposes = [purpose for purpose, _ in commands]
    assert purposes[0] == "preconditioning"
    assert len(commands) == 1 + len(plan.subject["measure"][0]["loop"]["cells"])
    assert all(command.startswith("fio --name=cell --filename=/dev/x ") for _, command in commands)
    seeds = {re.search(r"--randseed=(\d+)", command)[1] for _, command in commands}  # type: ignore[index]
    assert len(seeds) == len(commands)


def test_the_listed_commands_are_the_executed_ones(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "pts-write-saturation")
    (_, command), *_ = fio_commands(plan, "/dev/x", 64 << 20, 4096)
    assert "--status-interval=1 " in command
    assert "--runtime=5000ms" in command
    assert f"--randseed={plan.seed('cells/0-soak-part1')}" in command


def test_a_replay_is_named(campaign: Campaign) -> None:
    plan = next(planned.plan for planned in campaign.plans if planned.plan.measurement == "trace-replay")
    assert [purpose for purpose, _ in fio_commands(plan, "/dev/x", 64 << 20, 4096)][-1] == "replay of sqlite"


TWO = (Trace(10.0, 5 << 20, 8 << 20), Trace(20.0, 3 << 20, 2 << 20))
MIB_S = 100.0


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


def span(
    *measure: dict[str, Any], traces: tuple[Trace, ...] = TWO, capacity_bytes: int = 64 << 20, **change: Any
) -> Estimate:
    """Return the estimate of a plan with only these steps, at 100 MiB/s."""
    return estimate(made(*measure, **change), capacity_bytes, MIB_S, traces)


def replay(timing: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"choice": {"timing": timing}, "cold_runs": 1, "until": {"passes": 3}, "prefill": "none"}
    return {"replay": {**choice, **fields}}


def test_passes_over_a_set_are_estimated_exactly() -> None:
    result = span(replay({"mode": "original"}))
    assert result == Estimate(4 * 30.0, 4 * 30.0, 4 * (8 << 20), 4 * (8 << 20))


def test_repeats_until_they_agree_are_estimated_as_three_to_seven() -> None:
    result = span(replay({"mode": "original"}, until={"threshold": 0.05, "metric": "score"}))
    assert result == Estimate(4 * 30.0, 8 * 30.0, 4 * (8 << 20), 8 * (8 << 20))


def test_the_timing_decides_how_long_a_replay_takes() -> None:
    assert span(replay({"mode": "scaled", "factor": 0.5})).least_s == 4 * 15.0
    for mode in ("asap", "idle-capped"):
        result = span(replay({"mode": mode}))
        both = (max(5, 8) + max(3, 2)) / MIB_S
        assert result.least_s == pytest.approx(4 * both), "bounded by the full-duplex link"
        assert result.most_s == 4 * 30.0
        assert result.least_bytes == result.most_bytes == 4 * (8 << 20)


def test_a_prefill_writes_each_read_block_once() -> None:
    plain, filled = (span(replay({"mode": "original"}, prefill=prefill)) for prefill in ("none", "footprint"))
    assert filled.least_bytes == plain.least_bytes
    assert filled.most_bytes == plain.most_bytes + (10 << 20)
    assert filled.most_s == pytest.approx(plain.most_s + 0.1)
    small = span(replay({"mode": "original"}, prefill="footprint"), capacity_bytes=4 << 20)
    assert small.most_bytes == plain.most_bytes + (4 << 20), "no block is written twice"


def test_idle_takes_time_and_writes_nothing() -> None:
    assert span({"idle": {"time_s": 300.0}}, {"idle": {"time_s": 60.0}}) == Estimate(360.0, 360.0, 0.0, 0.0)


def streams(**fields: Any) -> dict[str, Any]:
    body = {"kind": "individual", "most": 9, "threads": [1], "queue_depth": [1], "runtime_s": 10.0}
    return {"loop": {"streams": {**body, **fields}, "until": {"window": 5, "max_rounds": 25}}}


def test_streams_are_estimated_without_their_trace() -> None:
    """The trace has one stream at least, and nine at most."""
    once = span(streams())
    assert once.least_s == pytest.approx(5 * 10.3)
    assert once.most_s == pytest.approx(9 * 25 * 10.3)
    assert (once.least_bytes, once.most_bytes) == (0, pytest.approx(9 * 25 * 10 * MIB_S * 2**20))
    sweep = span(streams(threads=[4, 1], queue_depth=[8, 2, 1]))
    assert sweep.most_s == pytest.approx(6 * once.most_s)
    assert sweep.least_s == pytest.approx(6 * once.least_s)


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
    assert len(consistency) == 1 + 2 * 7
    assert "--bsrange=4096-1048576" in consistency[1][1]
    assert consistency[2] == (
        "replay of b, a",
        "the native engine, idle capped at 10 ms; cold runs: 0, passes: 1; phase degradation, 1",
    )
    assert consistency[-2] == ("idle", "no I/O for 8 s")
    assert streams_[-1][0] == "round 1, streams of a"
    assert streams_[-1][1].endswith("at T2Q8")
    assert "depth; cold runs: 1, warm runs: 3 to 7" in asap[-1][1]


CELL = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 10.0}  # fmt: skip
MIB = 1 << 20
DRAIN_S = 10 * 4096 / (MIB_S * MIB)
"""Drain time of one page in flight, at a tenth of the assumed rate."""


def loop(*cells: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"loop": {"cells": [{**CELL, **cell} for cell in cells or ({},)], "until": {"rounds": 5}, **fields}}


def test_a_fixed_number_of_rounds_is_estimated_exactly() -> None:
    result = span(loop({}, {"runtime_s": 2.0, "read_share": 100}))
    assert result.least_s == pytest.approx(5 * 12.6)
    assert result.most_s == pytest.approx(5 * (12.6 + 2 * DRAIN_S))
    assert (result.least_bytes, result.most_bytes) == (0, pytest.approx(5 * (10 * MIB_S * MIB + 4096)))


def test_rounds_until_they_agree_are_three_to_seven_plus_cold_rounds() -> None:
    result = span(loop(until={"threshold": 0.05, "metric": "iops"}, cold_rounds=2))
    assert (result.least_s, result.most_s) == (pytest.approx(5 * 10.3), pytest.approx(9 * (10.3 + DRAIN_S)))


def test_fio_starts_during_pauses() -> None:
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
def test_the_writes_of_a_cell_are_bounded_by_link_and_rate(cell: dict[str, Any], mib_s: float, in_flight: int) -> None:
    assert span(loop(cell)).most_bytes == pytest.approx(5 * (10 * mib_s * MIB + in_flight))


def test_the_writes_of_a_mix_may_exceed_their_share() -> None:
    """By five standard deviations of a binomial distribution, because fio draws the direction of each I/O."""
    ios = 256 * 10 + 1
    result = span(loop({"rate_iops": 256.0, "read_share": 70}))
    assert result.most_bytes == pytest.approx(5 * 4096 * (0.3 * ios + 5 * (0.3 * 0.7 * ios) ** 0.5))


POINT = {"name": "mid", "step": 0, "of": {"read_share": 0}, "response_time_us": 5000.0}


def bare(**change: Any) -> dict[str, Any]:
    """Return a cell without threads and queue depth, which a point gives."""
    return {key: value for key, value in {**CELL, **change}.items() if key not in ("threads", "queue_depth")}


def test_a_point_changes_neither_time_nor_bytes() -> None:
    fields = {"cells": [bare()], "until": {"rounds": 5}, "point": POINT}
    assert span({"loop": fields}) == span(loop())


def soak(cell: dict[str, Any] | None = None, **until: Any) -> dict[str, Any]:
    return {"soak": {"cell": {**bare(), "runtime_s": None, "slice_s": 1.0, **(cell or {})}, "until": until}}


STEADY = {"every_s": 60.0, "window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "metric": "iops"}


def test_a_soak_that_is_steady_at_once_lasts_a_window() -> None:
    result = span(soak(time_s=3600.0, steady_state=STEADY))
    assert (result.least_s, result.most_s) == (300.0, pytest.approx(3600.0 + DRAIN_S))
    assert (result.least_bytes, result.most_bytes) == (0, pytest.approx(3600 * MIB_S * MIB + 4096))
    volume = span(soak(capacity_multiple=4.0, steady_state=STEADY))
    assert volume == Estimate(pytest.approx(2.56), pytest.approx(25.6), 0.0, 256 * MIB)  # type: ignore[arg-type]
    assert span(soak(capacity_multiple=4.0)).least_bytes == 256 * MIB


def test_a_limit_of_iops_lengthens_a_volume_and_bounds_a_time() -> None:
    slow = {"rate_iops": 256.0}
    assert span(soak(slow, capacity_multiple=4.0)).least_s == span(soak(slow, capacity_multiple=4.0)).most_s == 256.0
    assert span(soak(slow, time_s=60.0)).most_bytes == 60 * MIB + 4096


def test_both_directions_bound_the_time_of_a_mixed_volume() -> None:
    """At most at twice the fastest rate, which differs from the assumed rate."""
    half = made(soak({"read_share": 50}, capacity_multiple=4.0))
    result = estimate(half, 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert result.least_s == pytest.approx(256 / (2 * 4 * MIB_S))
    assert result.most_s == pytest.approx(10 * 256 / MIB_S)
    assert result.least_bytes < 128 * MIB < result.most_bytes < 1.02 * 128 * MIB
    reads = estimate(made(soak({"read_share": 100}, capacity_multiple=4.0)), 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert (reads.least_s, reads.most_bytes) == (pytest.approx(256 / (4 * MIB_S)), 0)
    window = span(soak({"read_share": 50}, capacity_multiple=4.0, time_s=1.5))
    assert (window.least_s, window.most_s) == (pytest.approx(1.28), pytest.approx(1.5 + DRAIN_S))


def test_a_volume_may_be_missed_by_one_io_per_thread() -> None:
    result = span(soak({"threads": 3, "queue_depth": 1, "block_size_bytes": MIB}, capacity_multiple=1.0))
    assert (result.least_bytes, result.most_bytes) == (61 * MIB, 67 * MIB)


def test_fills_and_rest_add_up() -> None:
    base = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 8}
    fill = [{**base, "capacity_multiple": 2.0, "range_share": 0.5}, {**base, "raw_capacity_multiple": 2.0}]
    result = span(condition={"purge": "none", "fill": fill, "rest_s": 600.0})
    written = (64 + 2 * 1.25 * 64) * MIB
    assert result.least_bytes == result.most_bytes == written
    assert result.least_s == result.most_s == pytest.approx(600 + written / (MIB_S * MIB))


def test_a_random_fill_may_be_ten_times_slower_and_never_faster_than_the_link() -> None:
    fill = {"pattern": "random", "block_size_bytes": 4096, "queue_depth": 8, "capacity_multiple": 2.0}
    plan = made(condition={"purge": "none", "fill": fill})
    result = estimate(plan, 64 * MIB, MIB_S, (), 4 * MIB_S)
    assert (result.least_s, result.most_s) == (pytest.approx(0.32), pytest.approx(12.8))
    assert result.least_bytes == result.most_bytes == 128 * MIB


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


def commands_of(*measure: dict[str, Any], **change: Any) -> list[tuple[str, str]]:
    return list(fio_commands(made(*measure, **change), "/dev/x", 64 << 20, 4096))


def test_pauses_and_cold_rounds_are_listed() -> None:
    entries = commands_of(loop({}, {"runtime_s": 2.0}, duty_cycle=0.5, cold_rounds=1))
    assert [purpose for purpose, _ in entries] == ["cold round 1, RND 4KiB 0/100 T1Q1"] * 2 + ["pause"]
    assert entries[-1][1] == "no I/O for 2 s to 10 s after each cell"
    assert commands_of(loop(pause_s=5.0))[-1] == ("pause", "no I/O for 5 s after each cell")


def test_two_workloads_are_one_command() -> None:
    beside = {"pattern": "sequential", "read_share": 100, "block_size_bytes": 131072, "threads": 2, "queue_depth": 3}
    ((_, command),) = commands_of(loop({"beside": beside}))
    first, second = command.split(" --name=beside ")
    assert first.startswith("fio --name=cell --filename=/dev/x ")
    assert "--rw=randwrite" in first
    assert "--rw=read" in second
    assert second.endswith("--output-format=json+")


def test_cells_at_a_point_are_described() -> None:
    steps = [{"loop": {"cells": [bare()], "until": {"rounds": 1}, "point": POINT}}, soak(time_s=60.0)]
    steps[1]["soak"]["point"] = POINT
    words = "the threads and queue depth at which step 1 reaches MID IOPS below 5 ms"
    assert commands_of(*steps) == [("round 1, RND 4KiB 0/100", words), ("soak, RND 4KiB 0/100", words)]


def test_rest_barrier_and_application_are_described() -> None:
    condition = {"purge": "none", "rest_s": 600.0}
    application = {"application": {"cold_runs": 1, "until": {"threshold": 0.05, "metric": "duration_s"}}}
    entries = commands_of(application, condition=condition, simultaneous=["S1", "S2"], application={"name": "sqlite"})
    assert entries == [
        ("rest", "flush the drive's cache, then no I/O for 10 min"),
        ("at the same time", "the drives with the serials S1, S2 start each step together"),
        ("application sqlite", "on a file system on the drive; cold runs: 1, warm runs: 3 to 7"),
    ]


def test_the_time_of_an_application_is_listed_as_unknown() -> None:
    assert row(applications=("sqlite",)).lines()[-1] == (
        "    not known beforehand: time and writes of the application sqlite"
    )
