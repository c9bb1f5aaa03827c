"""All stages of a measurement on a partition, as `drivelab run` calls them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_plans import made_plan
from partitions import MIB, Partitioned, write

from drivelab.collect.collect import collect
from drivelab.collect.conditions import conditions
from drivelab.collect.inventory import drives
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.telemetry.sampler import read_samples

pytestmark = pytest.mark.device

FILL = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 4, "capacity_multiple": 1}
CELL = {"pattern": "random", "read_share": 0.0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 4,
        "runtime_s": 1.0, "range_share": 1.0}  # fmt: skip
LOOP = {"loop": {"cells": [CELL], "until": {"rounds": 1}}}


@pytest.fixture
def plan(partitioned: Partitioned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    """A plan for the partition, with its link as udev makes it, and consent."""
    link = Path("/dev/disk/by-partuuid", partitioned.row.serial)
    made = [folder for folder in (link.parent, link.parent.parent) if not folder.exists()]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(partitioned.part(2))
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
        f"part\t{link}\t{partitioned.row.serial}\tyes\t\tpartition\tTEST-1\n"
    )
    monkeypatch.setattr("drivelab.run.consent.check", lambda *arguments: None)
    drive_class = {"name": "client", "threads": 1, "queue_depth": 4, "active_range": 1.0}
    plan = made_plan(tmp_path, [LOOP], {"fill": FILL}, clock="wall", **{"class": drive_class, "write_cache": None})
    drive = {"serial": partitioned.row.serial, "kind": "partition", "members": ["TEST-1"]}
    yield replace(
        plan,
        subject={**plan.subject, "drive": drive},
        context={**plan.context, "drive": "part", "device": str(link), "drives_sheet": str(sheet)},
    )
    link.unlink()
    for folder in made:
        folder.rmdir()


def stages(plan: Plan, folder: Path) -> Iterator[str]:
    """Run the stages one after the other, and yield after each its name."""
    purge(plan, folder / "purged.json")
    yield "purge"
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    yield "precondition"
    measure(plan, folder / "conditioned.json")
    yield "measure"


def values(recordings: list[Path]) -> dict[str, str]:
    table = conditions(recordings, {})
    return dict(zip(table["facet"], table["value"], strict=True))


def test_a_partition_is_measured_and_everything_else_stays(
    plan: Plan, partitioned: Partitioned, tmp_path: Path
) -> None:
    before = partitioned.content()
    assert list(stages(plan, tmp_path)) == ["purge", "precondition", "measure"]
    after = partitioned.content()
    assert after[: 5 * MIB] == before[: 5 * MIB]
    assert after[11 * MIB :] == before[11 * MIB :]
    assert after[5 * MIB : 11 * MIB] != before[5 * MIB : 11 * MIB]

    recording = plan.recording_path
    journal: list[dict[str, Any]] = list(read_journal(recording))
    compared = [line for line in journal if line["event"] == "neighbours"]
    assert [(line["stage"], line["changed"]) for line in compared] == [
        ("purge", []), ("precondition", []), ("measure", []),
    ]  # fmt: skip
    disk = Path(partitioned.drive.device).name
    assert {f"{disk}p1", f"{disk}p3", f"the partition table of {disk}", f"the end of {disk}"} <= set(
        compared[0]["areas"]
    )
    assert [line["intact"] for line in journal if line["event"] == "verdict"] == [True, True]

    identity = json.loads((recording / "identity.json").read_text())
    assert (identity["kind"], identity["serial"]) == ("partition", plan.subject["drive"]["serial"])
    assert identity["composition"] == "partition at byte 5,242,880 (aligned to 1 MiB) on 1 drive"
    assert [member["serial"] for member in identity["members"]] == ["TEST-1"]
    assert {row["scope"] for row in json.loads((recording / "settings.json").read_text())} == {"host", disk}
    facets = values([recording])
    assert (facets["kind"], facets["array state"]) == ("partition", "no array")
    assert facets["purge"] == "TRIM of the whole partition"
    (row,) = drives([recording]).to_dict("records")
    assert (row["kind"], row["composition"]) == (identity["kind"], identity["composition"])
    samples = list(read_samples(recording))
    assert any("sectors_written" in sample for sample in samples)
    cells = collect(recording, reduced=False)["cells"]
    assert cells["unsound"].isna().all()
    assert cells["iops"].gt(0).all()


def test_a_write_to_a_sibling_between_the_stages_breaks_the_seal(
    plan: Plan, partitioned: Partitioned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = stages(plan, tmp_path)
    assert next(steps) == "purge"
    write(partitioned.part(3), 4096)
    assert next(steps) == "precondition"
    assert "its disk TEST-1 was written to beside it since the seal" in capsys.readouterr().out


def test_a_sheet_with_other_members_than_the_plan_is_refused(plan: Plan, tmp_path: Path) -> None:
    sheet = Path(plan.context["drives_sheet"])
    sheet.write_text(sheet.read_text().replace("TEST-1", "TEST-1 TEST-2"))
    with pytest.raises(UserError, match="kind or members of 'part' have changed since the plan"):
        next(stages(plan, tmp_path))


def test_a_measurement_of_another_array_state_is_refused(plan: Plan, tmp_path: Path) -> None:
    plan = replace(plan, subject={**plan.subject, "array_state": "degraded"})
    with pytest.raises(UserError, match="it has no array, but the measurement is for the state 'degraded'"):
        next(stages(plan, tmp_path))
