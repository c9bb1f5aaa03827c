"""Conditioning on the virtual clock: written volumes and ranges, the rest, and required host settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from made_plans import CAPACITY_BYTES, made_plan
from stages import conditioned as purge_and_precondition
from stages import lines, part_of, run_stages

from drivelab.collect.conditions import conditions
from drivelab.core.errors import CellFailed, UserError
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.run import clock_device
from drivelab.run import condition as scenario
from drivelab.run.condition import precondition, purge
from drivelab.run.fill import passes, probes, rest
from drivelab.run.measure import measure
from drivelab.virtual.model import PAGE_BYTES, DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

SEQUENTIAL = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 4}
RANDOM = {"pattern": "random", "block_size_bytes": 4096, "queue_depth": 8}
PAGES = CAPACITY_BYTES // PAGE_BYTES
IDLE = {"idle": {"time_s": 0.1}}


def journal(plan: Plan, event: str) -> list[dict[str, Any]]:
    return lines(part_of(plan), event)


def drive_of(plan: Plan) -> VirtualClockDrive:
    model = DriveModel.from_mapping("mine", plan.subject["drive"]["virtual"])
    return VirtualClockDrive(model, next(Path(plan.context["results"]).glob("virtual/*.state")))


def conditioned(folder: Path, fill: Any, **more: Any) -> tuple[Plan, dict[str, int]]:
    model = more.pop("model", None)
    subject = {"class": more.pop("drive_class")} if "drive_class" in more else {}
    plan = made_plan(folder, [IDLE], {"fill": fill, **more}, model=model, **subject)
    purge_and_precondition(plan, folder)
    return plan, drive_of(plan).counters()


@pytest.mark.parametrize(
    ("condition", "title", "facet"),
    [
        ({"not_purged": True}, "the study sets purge: none", "not purged"),
        ({}, "the protocol requires no purge", "none"),
    ],
)
def test_the_recording_says_why_there_was_no_purge(
    tmp_path: Path, condition: dict[str, bool], title: str, facet: str
) -> None:
    drive_class = {"name": "client", "threads": 1, "queue_depth": 8, "active_range": 1.0}
    plan = made_plan(tmp_path, [IDLE], {"purge": "none", **condition}, **{"class": drive_class})
    purge(plan, tmp_path / "purged.json")
    (line,) = journal(plan, "purge")
    assert (line["method"], line["verified"]) == ("none", title)
    precondition(plan, tmp_path / "purged.json", tmp_path / "conditioned.json")
    measure(plan, tmp_path / "conditioned.json")
    table = conditions([plan.recording_path], {})
    assert list(table[table["facet"] == "purge"]["value"]) == [facet]


def test_a_single_fill_keeps_its_folder_and_seed(tmp_path: Path) -> None:
    plan, counters = conditioned(tmp_path, {**SEQUENTIAL, "capacity_multiple": 2})
    (line,) = journal(plan, "fill")
    assert (line["directory"], line["bytes"]) == ("condition/fill", 2 * CAPACITY_BYTES)
    assert line["cell"]["range_share"] == 1.0
    assert "range_bytes" not in line["cell"]
    assert counters["host_write_bytes"] == 2 * CAPACITY_BYTES
    assert counters["mapped_pages"] == PAGES
    (fill,) = passes(plan, CAPACITY_BYTES)
    assert fill.seed == 1, "a single fill keeps its seed"


def test_a_purge_for_another_recording_is_noticed(tmp_path: Path) -> None:
    """A purge changes no write counter: the drive is empty, but the seal after the fill would still match."""
    mine, counters = conditioned(tmp_path, {**SEQUENTIAL, "capacity_multiple": 1})
    other = Plan(mine.subject, {**mine.context, "run": 3})
    purge(other, tmp_path / "other.json")
    assert drive_of(mine).counters()["mapped_pages"] == 0
    assert drive_of(mine).counters()["host_write_bytes"] == counters["host_write_bytes"]
    measure(mine, tmp_path / "conditioned.json")
    verdicts = [(line["stage"], line["intact"], line["reason"]) for line in lines(mine, "verdict")]
    assert verdicts[-1] == (
        "precondition", False, f"the drive was used for {other.recording} in the meantime",
    )  # fmt: skip
    assert len(lines(mine, "fill")) == 2
    assert drive_of(mine).counters()["mapped_pages"] == PAGES


CLASS = {"threads": 1, "queue_depth": 8, "active_range": 1.0}


@pytest.mark.parametrize(
    ("fill", "drive_class", "mapped_share", "multiple"),
    [
        ({"range_share": 0.5, "capacity_multiple": 1}, {}, 0.5, 1),
        ({"range_share": 0.25, "capacity_multiple": 3}, {}, 0.25, 3),
        ({"range_share": 0.5, "capacity_multiple": 1}, {"active_range": 0.75}, 0.375, 1),
        ({"capacity_multiple": 2}, {"range_bytes": 4 << 20}, 0.25, 2),
        ({"range_share": 0.5, "capacity_multiple": 2}, {"range_bytes": 4 << 20}, 0.125, 2),
    ],
)
def test_a_partial_fill_leaves_the_rest_unwritten(
    tmp_path: Path, fill: dict[str, float], drive_class: dict[str, float], mapped_share: float, multiple: float
) -> None:
    """A share is that of the class's active range, or of its range in bytes."""
    plan, counters = conditioned(tmp_path, {**SEQUENTIAL, **fill}, drive_class={**CLASS, **drive_class})
    assert counters["mapped_pages"] == mapped_share * PAGES
    assert counters["host_write_bytes"] == multiple * mapped_share * CAPACITY_BYTES
    if "range_bytes" in drive_class:
        assert journal(plan, "fill")[0]["cell"]["range_bytes"] == mapped_share * CAPACITY_BYTES


def test_the_raw_capacity_includes_the_over_provisioning(tmp_path: Path) -> None:
    _, counters = conditioned(tmp_path, {**RANDOM, "raw_capacity_multiple": 1.5})
    wanted = 1.5 * 1.28 * CAPACITY_BYTES
    assert wanted - PAGE_BYTES < counters["host_write_bytes"] <= wanted


def test_each_fill_pass_has_its_own_evidence(tmp_path: Path) -> None:
    fills = [{**SEQUENTIAL, "capacity_multiple": 1}, {**RANDOM, "capacity_multiple": 0.5}]
    plan, counters = conditioned(tmp_path, fills)
    fills = [(line["directory"], line["bytes"], line["cell"]["pattern"]) for line in journal(plan, "fill")]
    assert fills == [
        ("condition/fill", CAPACITY_BYTES, "sequential"),
        ("condition/fill-2", CAPACITY_BYTES // 2, "random"),
    ]
    assert counters["host_write_bytes"] == 1.5 * CAPACITY_BYTES
    first, second = passes(plan, CAPACITY_BYTES)
    assert first.seed != second.seed


def test_a_range_without_a_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is smaller than a block of 131072 bytes"):
        conditioned(tmp_path, {**SEQUENTIAL, "capacity_multiple": 1, "range_share": 0.001})


def test_a_failed_fill_pass_names_its_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = clock_device.ClockDevice.run

    def run(device: Any, cell: Cell, *rest_of_them: Any) -> None:
        if cell.pattern == "random":
            raise CellFailed("fio reports error 5")
        original(device, cell, *rest_of_them)

    fills = [{**SEQUENTIAL, "capacity_multiple": 1}, {**RANDOM, "capacity_multiple": 1}]
    plan = made_plan(tmp_path, [IDLE], {"fill": fills})
    with monkeypatch.context() as patch:
        patch.setattr(clock_device.ClockDevice, "run", run)
        with pytest.raises(UserError, match=r"preconditioning failed: fio reports error 5.*condition/fill-2;"):
            purge_and_precondition(plan, tmp_path)
    assert journal(plan, "failed")[0]["directory"] == "condition/fill-2"
    purge_and_precondition(plan, tmp_path)
    done = [line["directory"] for line in journal(plan, "fill")]
    assert done == ["condition/fill", "condition/fill-2"], "purged, so all passes run again"


def test_the_slc_cache_folds_during_a_rest(tmp_path: Path) -> None:
    """If the SLC cache holds all written data, none of it moves to the main area without a rest.

    With one, two short writes of 512 KiB, before the fill and after the rest, show that the cache is free.
    """
    nand = {}
    for rest_s in (None, 60.0):
        (folder := tmp_path / str(rest_s)).mkdir()
        more = {} if rest_s is None else {"rest_s": rest_s}
        fill = {**SEQUENTIAL, "capacity_multiple": 1, "range_share": 0.25}
        plan, counters = conditioned(folder, fill, model={"slc_cache": "4MiB"}, **more)
        nand[rest_s] = counters["nand_write_bytes"]
        rests = [(line["rest_s"], line["flushed"]) for line in journal(plan, "rest")]
        assert rests == ([] if rest_s is None else [(rest_s, True)])
    assert nand[None] == 4 << 20
    assert nand[60.0] == (8 << 20) + (1 << 19)  # the first short write is overwritten before it moves


@pytest.mark.parametrize(("rest_s", "rests", "is_free"), [(60.0, 1, True), (0.1, 3, False)])
def test_a_rest_is_repeated_until_the_cache_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rest_s: float, rests: int, is_free: bool
) -> None:
    """The drive empties its full cache once it has been idle for 0.3 s."""
    fill = {**SEQUENTIAL, "capacity_multiple": 1}
    plan, _ = conditioned(tmp_path, fill, model={"slc_cache": "4MiB"}, rest_s=rest_s)
    (line,) = journal(plan, "rest")
    assert (line["rests"], line["as_empty"]) == (rests, is_free)
    assert (line["empty_us"] / line["rested_us"] > 0.9) == is_free
    assert len(journal(plan, "probe")) == 1 + rests
    assert ("its cache may not be free" in capsys.readouterr().out) != is_free


def test_without_a_purge_nothing_tells_whether_the_cache_is_free() -> None:
    condition = {"purge": "none", "rest_s": 1.0, "fill": SEQUENTIAL}
    assert not probes({"condition": condition})
    assert probes({"condition": {**condition, "purge": "auto"}})
    assert not probes({"condition": {**condition, "purge": "auto"}, "file_system": {}}), "a first write allocates"
    assert not probes({"condition": {"purge": "required", "rest_s": 1.0}})


def test_the_flush_waits_for_the_write_buffer(tmp_path: Path) -> None:
    plan = made_plan(tmp_path)
    drive = VirtualClockDrive(DriveModel.from_mapping("mine", plan.subject["drive"]["virtual"]), tmp_path / "state")
    drive.run(Cell(**RANDOM, read_share=0, threads=1, volume_bytes=32 * PAGE_BYTES), tmp_path)
    before_us = drive.now_us
    drive.flush()
    first_us = drive.now_us - before_us
    drive.flush()
    assert first_us > 680 > drive.now_us - before_us - first_us, "the time to program a page"


def test_a_rest_starts_with_a_flush_and_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, done, texts = [100.0], [], []

    class Device:
        def flush(self) -> None:
            done.append("flush")

        def idle(self, seconds: float) -> None:
            done.append(seconds)
            now[0] += seconds

    class Recorder:
        def say(self, text: str, fraction: float) -> None:
            texts.append(text)

    monkeypatch.setattr("drivelab.run.fill.time.monotonic", lambda: now[0])
    rest(made_plan(tmp_path, clock="wall"), Device(), Recorder(), 2.5)  # type: ignore[arg-type]
    assert done == ["flush", 1.0, 1.0, 0.5]
    assert texts[1] == "cache flushed, idle, 1 s of 2.5 s"


ROW = {"name": "CPU governor", "scope": "host", "state": "powersave", "wanted": "performance", "deviation": True}
GOOD = {**ROW, "state": "performance", "deviation": False}
UNKNOWN = {**ROW, "name": "turbo", "state": "not available here", "deviation": None}
OF_DRIVE = {**ROW, "name": "I/O scheduler", "scope": "sda", "state": "bfq", "wanted": "none"}


def settings(monkeypatch: pytest.MonkeyPatch, *rows: Mapping[str, Any]) -> None:
    monkeypatch.setattr(scenario, "snapshot", lambda drives, name: [dict(row) for row in rows])


def in_real_time(folder: Path) -> Plan:
    return made_plan(folder, [IDLE], {"scenario_required": True}, clock="wall")


class Named:
    settings_of = ("sda",)


def test_deviating_host_settings_are_refused_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(monkeypatch, ROW, GOOD, UNKNOWN, OF_DRIVE)
    with pytest.raises(UserError) as failure:
        scenario.require_scenario(in_real_time(tmp_path), Named())  # type: ignore[arg-type]
    words = str(failure.value)
    assert "scenario 'real-world', but 2 settings differ: CPU governor is powersave, required performance;" in words
    assert "I/O scheduler of sda is bfq, required none" in words
    assert "host_settings: apply" in words
    assert "docs/host_settings.md" in words


def test_matching_host_settings_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(monkeypatch, GOOD, UNKNOWN)
    assert scenario.require_scenario(in_real_time(tmp_path), Named()) == {  # type: ignore[arg-type]
        "scenario": "real-world", "checked": True, "deviations": [], "settings": 2, "unknown": 1,
    }  # fmt: skip
    settings(monkeypatch, ROW)
    assert scenario.require_scenario(made_plan(tmp_path, clock="wall"), Named()) is None  # type: ignore[arg-type]


def test_host_settings_are_not_checked_on_the_virtual_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(monkeypatch, ROW)
    plan = made_plan(tmp_path, [IDLE], {"scenario_required": True})
    run_stages(plan, tmp_path)
    assert [(line["stage"], line["checked"]) for line in lines(plan, "scenario")] == [
        ("purge", False), ("precondition", False), ("measure", False),
    ]  # fmt: skip


@pytest.mark.parametrize("stage", ["purge", "precondition", "measure"])
def test_no_stage_writes_on_a_host_that_deviates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    plan = made_plan(tmp_path, [IDLE], {"fill": {**SEQUENTIAL, "capacity_multiple": 1}, "scenario_required": True})
    purge_and_precondition(plan, tmp_path)
    before, lines_before = drive_of(plan).now_us, len(journal(plan, "fill"))

    def refuse(*_: Any) -> None:
        raise UserError("the host deviates")

    monkeypatch.setattr("drivelab.run.condition.require_scenario", refuse)
    monkeypatch.setattr("drivelab.run.measure.require_scenario", refuse)
    seals = (tmp_path / "purged.json", tmp_path / "conditioned.json")
    with pytest.raises(UserError, match="the host deviates"):
        {"purge": lambda: purge(plan, seals[0]), "precondition": lambda: precondition(plan, *seals),
         "measure": lambda: measure(plan, seals[1])}[stage]()  # fmt: skip
    assert (drive_of(plan).now_us, len(journal(plan, "fill"))) == (before, lines_before)


@pytest.mark.parametrize(("planned", "now"), [(None, "2.0"), ("1.0", "2.0"), ("1.0", "")])
def test_a_plan_for_another_firmware_is_refused(tmp_path: Path, planned: str | None, now: str) -> None:
    """A chain may wait in a queue during an update of drive and sheet: its recording would replace the old one."""
    original = made_plan(tmp_path, [IDLE], {"fill": {**SEQUENTIAL, "capacity_multiple": 1}})
    drive = original.subject["drive"] | ({"firmware": planned} if planned else {})
    plan = Plan({**original.subject, "drive": drive}, original.context)
    sheet = Path(plan.context["drives_sheet"])
    head, *rows = sheet.read_text().splitlines()
    sheet.write_text("\n".join([f"{head}\tfirmware", *(f"{row}\t{now}" for row in rows), ""]))
    with pytest.raises(UserError, match=r"firmware is .*, but the plan is for (any|1\.0); run again"):
        purge(plan, tmp_path / "purged.json")
    assert not plan.recording_path.parent.exists()
