"""Measure what the host gives, beside a loop device over the test's own file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.values.summary import summary_table
from drivelab.analysis.verdict import HOST_LIMITED
from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.criteria import host_limit
from drivelab.criteria.taint import Limits
from drivelab.fio.null_target import CEILINGS
from drivelab.plan.plan import Plan
from drivelab.run import guest, host_ceiling
from drivelab.run.measure import measure
from drivelab.tables.schemas import SCHEMAS
from drivelab.virtual import fuse

pytestmark = [pytest.mark.device, pytest.mark.single]
MIB = 1 << 20
STUDY = """\
name: own
results: results
drives: [x]
drives_sheet: config/own.tsv
measurements:
  - {protocol: quick-reads, set: {loop: {runtime: 600ms, cold_rounds: 0, until: {rounds: 1}}}}
"""


@pytest.fixture
def plan(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _possible: str | None) -> Iterator[Plan]:
    """The plan of reads of a loop device, with a run directory of the test's own."""
    if _possible is not None:
        pytest.skip(_possible)
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(host_ceiling, "UNDISTURBED", 0.0)  # other programs may run beside the test
    image = tmp_path / "disk.img"
    image.write_bytes(os.urandom(32 * MIB))
    device = fuse.attach_loop(image, sector_bytes=512)
    try:
        serial = guest.identifier(Path(device).name)
        columns = "drive\tdevice\tserial\tdestructive\tnote\tkind"
        (project / "config/own.tsv").write_text(f"{columns}\nx\t{device}\t{serial}\tno\t\tread-only\n")
        (project / "config/own.yaml").write_text(STUDY)
        (planned,) = Campaign.load("config/own.yaml").plans
        yield planned.plan
    finally:
        fuse.detach_loop(device, image, 60)


def cells_of(plan: Plan) -> pd.DataFrame:
    measure(plan, Path("none.json"))
    return collect(plan.recording_path, reduced=True, limits=Limits(100.0, 100.0))["cells"]


def ceilings(plan: Plan) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((plan.recording_path / CEILINGS).read_text())["loads"]
    return entries


def test_a_recording_holds_the_ceiling_of_each_load(plan: Plan) -> None:
    before = set(Path("/sys/block").glob("zram*"))
    cells = cells_of(plan)
    loads = ceilings(plan)
    assert len(loads) == len(cells) == 4
    for entry in loads:
        assert entry["measured"], "fio's null engine exists everywhere"
        for result in entry["measured"]:
            assert "failed" not in result
            assert result["iops"] == max(result["tries"])
            assert f"bs={entry['load']['block_size_bytes']}\n" in result["job"]
            assert result["meaning"]
    assert (cells["host_at_most_iops"] > cells["iops"]).all()
    assert cells["host_targets"].str.contains("at most").all()
    assert cells["busiest_cpus_pct"].notna().all(), "the journal has the CPUs of every cell"
    assert set(Path("/sys/block").glob("zram*")) == before, "the temporary device is removed"


def test_a_load_is_measured_once_for_a_host(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    cells_of(plan)
    first = ceilings(plan)
    plan.recording_path.rename(plan.recording_path.with_name("before"))
    monkeypatch.setattr(host_ceiling, "null_targets", None)  # a measurement would need it
    cells_of(plan)
    assert ceilings(plan) == first


def test_a_cell_at_the_ceiling_is_host_limited(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_limit, "NEAR_CEILING", 1e-6)
    cells = cells_of(plan)
    assert cells["host_limited"].all()
    assert cells["host_limit"].str.match("ceiling: the host gives at most [0-9,]+ IOPS at this load").all()
    empty = {name: pd.DataFrame(columns=SCHEMAS[name].names) for name in ("steady_state", "replays", "replay_passes")}
    summary = summary_table(cells, **empty)
    assert set(summary["verdict"]) == {HOST_LIMITED}
    assert summary["host_limit"].notna().all()


def test_a_null_target_that_fails_costs_no_recording(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError(5, "no such luck")

    monkeypatch.setattr(host_ceiling, "_best", refuse)
    cells = cells_of(plan)
    assert cells["host_at_most_iops"].isna().all()
    assert all("no such luck" in result["failed"] for entry in ceilings(plan) for result in entry["measured"])


@pytest.mark.parametrize(
    ("threads", "threads_pct", "is_bound"),
    [(1, 99.0, True), (1, 80.0, False), (4, 49.0, True), (4, 40.0, False), (2, 89.9, False)],
)
def test_a_disturbed_run_is_no_upper_bound(threads: int, threads_pct: float, is_bound: bool) -> None:
    result = {"iops": 1.0, "threads_pct": threads_pct, "bounds": ["at least", "at most"]}
    judged = host_ceiling.without_disturbed_bound(result, threads, cpus=2)
    assert ("at most" in judged["bounds"]) is is_bound
    assert ("disturbed" in judged) is not is_bound
    assert "at least" in judged["bounds"]
