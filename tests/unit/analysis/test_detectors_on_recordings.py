"""Detect drive characteristics in recordings on the virtual clock; the drive model gives the truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats
from stages import plans_of, run_stages

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.collect.collect import collect
from drivelab.fio.result import read_slices
from drivelab.plan.cell import Cell
from drivelab.recording.writer import read_journal

MODEL: dict[str, Any] = {"serial": "V-OWN", "capacity": "16MiB", "over_provisioning": "100%", "logical_block": "512B",
                         "copy_us": 1, "erase_us": 1}  # fmt: skip
"""Garbage collection costs almost nothing, so the rest of the model determines the result."""


def recorded(measurement: str, **model: Any) -> Path:
    """Record a measurement of a drive with this `model`, or of op7-512e without one."""
    drive = "own" if model else "op7-512e"
    if model:
        Path("config/virtual_drives.yaml").write_text(yaml.safe_dump({"own": {**MODEL, **model}}))
        Path("config/drives.tsv").write_text(
            "drive\tdevice\tserial\tdestructive\tnote\nown\tvirtual:own\tV-OWN\tyes\t\n"
        )
    (plan,) = plans_of(
        f"name: one\nresults: results\nclock: virtual\ndrives: [{drive}]\nmeasurements:\n  - {{{measurement}}}\n"
    )
    return run_stages(plan)


def findings(recording: Path, detector: str) -> list[dict[str, Any]]:
    result = findings_table(collect(recording, reduced=True), {detector: DETECTORS[detector]})
    return [dict(row) for row in result.to_dict("records")]


PENALTY_OF_THE_BUS = {"transfer_us": 200, "command_us": 10, "read_us": 20}
WAITING_READS = {"pages_per_block": 64, "dies": 64, "program_us": 5000, "read_us": 100, "command_us": 85,
                 "transfer_us": 20, "write_buffer": "4MiB"}  # fmt: skip


def loop(**fields: str) -> str:
    return "set: {loop: {" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}}"


def test_unaligned_reads_cost_the_bus_two_pages_for_one(project: Path) -> None:
    """The bus is the limit, and it carries both pages of an unaligned read."""
    place = recorded("protocol: stec-alignment, scale: demo", **PENALTY_OF_THE_BUS)
    (reads,) = [row for row in findings(place, "alignment") if "100/0" in row["cell_label"]]
    assert reads["found"]
    assert reads["value"] == pytest.approx(50, abs=1)


def test_the_knee_is_where_outstanding_reads_keep_the_controller_busy(project: Path) -> None:
    """A read takes 8 times as long as the controller's part of it, and there are enough dies."""
    until = "{steady_state: {track: [{read_share: 100, block_size: 4KiB, queue_depth: 32, metric: iops}]}}"
    cells = "{read_share: [100], queue_depth: [1, 2, 4, 8, 16, 32], block_size: [4KiB], alignment_offset: [0B]}"
    sweep = loop(cells=cells, runtime="1s", until=until)
    place = recorded(f"protocol: stec-queue-depths, scale: demo, {sweep}",
                     dies=64, pages_per_block=64, command_us=100, read_us=690, transfer_us=5)  # fmt: skip
    (knee,) = findings(place, "queue-depth knee")
    assert (knee["found"], knee["value"]) == (True, 8)
    crossing = float(knee["words"].rsplit(" ", 1)[1])
    assert crossing == pytest.approx(8, rel=0.05)


def test_reads_that_wait_for_long_programs_make_a_bathtub(project: Path) -> None:
    """One I/O at a time, 64 dies: a write completes when it is buffered, and keeps a die busy for S = 5000 us.

    Half of the I/Os are reads, each of a die that is busy with probability S / 64 T where T is the time of a pair, and
    then for S / 2: T = write + read + S² / 128 T.
    """
    mixes = loop(cells="{read_share: [100, 50, 0]}", runtime="1s")
    place = recorded(f"protocol: stec-read-shares, scale: demo, {_one_at_a_time(mixes)}", **WAITING_READS)
    write_us, read_us, program_us = 85 + 20, 85 + 100 + 20, 5000
    both_us = write_us + read_us
    pair_us = (both_us + math.sqrt(both_us**2 + 4 * program_us**2 / 128)) / 2
    mixed, line = 2e6 / pair_us, (1e6 / write_us + 1e6 / read_us) / 2
    (row,) = findings(place, "bathtub")
    assert (row["found"], "50/50" in row["cell_label"]) == (True, True)
    assert row["value"] == pytest.approx(100 * (1 - mixed / line), abs=5)
    assert "slower than either alone" in row["words"]


def test_mixes_of_a_drive_whose_controller_is_the_limit_are_no_bathtub(project: Path) -> None:
    place = recorded("protocol: stec-read-shares, scale: demo", command_us=500, program_us=50, write_buffer="4MiB")
    (row,) = findings(place, "bathtub")
    assert (row["found"], row["value"]) == (False, pytest.approx(0, abs=0.1))


def test_long_idle_time_frees_the_slc_cache(project: Path) -> None:
    """Idle time begins after 5 s; then a burst goes to the SLC cache at the controller's rate, 85 us a command."""
    place = recorded("protocol: pts-idle-recovery, scale: demo, set: {repeat: {over: {time: [3s, 8s]}, "
                     "loop: {runtime: 500ms}}}")  # fmt: skip
    (row,) = findings(place, "recovery")
    assert row["words"].startswith("after 8 s ")
    before = np.mean([part["iops"] for part in _slices(place, 2)])
    assert row["value"] == pytest.approx(100 * (1e6 / 85 / before - 1), rel=0.1)


@pytest.mark.parametrize("protocol", ["slc-cache", "slc-cache-random"])
def test_the_cache_of_the_model_is_measured(project: Path, protocol: str) -> None:
    """The model's cache of 48 MiB is fast, full after a burst, and free once the drive was idle for 5 s."""
    place = recorded(f"protocol: {protocol}, scale: demo, set: {{for_each: {{range: [75%]}}}}")
    first, *waits = findings(place, "write cache")
    assert first["value"] == pytest.approx(48, rel=0.06)
    assert [row["words"].partition("the cache ")[2] for row in waits] == ["is full", "is back", "is back"]
    assert [row["value"] for row in waits[1:]] == pytest.approx([100, 100], abs=5)


def test_recovery_ends_with_the_first_slice_at_the_settled_rate(project: Path) -> None:
    """The drive writes at random, then sequentially again; the truth comes from fio's output of the three soaks."""
    place = recorded("protocol: pts-cross-stimulus-recovery, scale: demo")
    first, _, third = (_slices(place, step) for step in range(3))
    settled = [part["bandwidth_mib_s"] for part in first[-max(len(first) // 5, 5) :]]
    usual = min(0.9 * np.mean(settled), np.mean(settled) - 3 * np.std(settled, ddof=1))
    back_s = next(number for number, part in enumerate(third, 1) if part["bandwidth_mib_s"] >= usual)
    (row,) = findings(place, "recovery")
    assert (row["found"], row["unit"], row["value"]) == (True, "s", pytest.approx(back_s, abs=0.1))
    assert back_s > 5


def test_a_drive_that_fills_during_reads_drifts(project: Path) -> None:
    """One I/O at a time, every other one a read. A read waits for a die only if its page was written before: of N
    pages, a share of 1 - exp(-n / N) after n random writes.
    """
    filling = "set: {fill: {capacity_multiple: 0.01}, soak: {read_share: 50, active_range: 100%, until: {time: 40s}}}"
    place = recorded(f"protocol: qos-nines, scale: demo, {filling}",
                     capacity="256MiB", read_us=400, program_us=10, command_us=85, transfer_us=15)  # fmt: skip
    pages, waits_us, command_us, written = (256 << 20) / 4096, 400.0, 100.0, 0.01
    course, step_s = [], 0.01
    for _ in range(round(40 / step_s)):
        course.append(1e6 / (command_us + written * waits_us / 2))
        written += (1 - written) * step_s * course[-1] / 2 / pages
    seconds = np.array(course).reshape(40, -1).mean(axis=1)
    slope = stats.theilslopes(np.log(seconds), np.arange(40)).slope
    (row,) = findings(place, "drift")
    assert row["found"]
    # of twenty blocks of 2 s, from the first to the last
    assert row["value"] == pytest.approx(100 * np.expm1(38 * slope), abs=2)
    assert [part["iops"] for part in _slices(place)] == pytest.approx(list(seconds), rel=0.05)


def _one_at_a_time(measurement: str) -> str:
    return measurement.replace("set: {", "set: {class: {enterprise: {queue_depth: 1}, client: {queue_depth: 1}}, ")


def _slices(place: Path, step: int = 0) -> list[dict[str, float]]:
    """Return IOPS and bandwidth of the slices of a soak, from fio's documents."""
    lines = [line for line in read_journal(place) if line["event"] == "soak" and line["step"] == step]
    return [{"iops": part.iops, "bandwidth_mib_s": part.bandwidth_mib_s}
            for line in lines for part in read_slices(place / line["directory"], Cell(**line["workload"]))]  # fmt: skip
