from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan

STUDY = Path("config/demo.yaml")
IOPS = Path("config/protocols/pts-iops.yaml")


def digests() -> dict[tuple[str, str], str]:
    return {
        (planned.plan.drive, planned.plan.measurement): planned.plan.digest for planned in Campaign.load(STUDY).plans
    }


def changed(path: Path, old: str, new: str) -> set[tuple[str, str]]:
    """Return the measurements whose digest changes with a change of a file."""
    before, text = digests(), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    after = digests()
    path.write_text(text)
    return {key for key in before if after.get(key) != before[key]}


def test_only_what_a_measurement_depends_on_changes_its_digest(project: Path) -> None:
    assert changed(STUDY, "title: Does", "title: Whether") == set()
    assert changed(IOPS, "# the first key varies slowest", "# outer key first") == set()
    assert changed(IOPS, "title: IOPS", "title: Input/output operations") == set()
    assert changed(IOPS, "{read_share: [100, 65, 0], block_size: [1024KiB, 64KiB, 4KiB]}",
                   "{block_size: [1024KiB, 64KiB, 4KiB], read_share: [100, 65, 0]}") == set()  # fmt: skip
    both = {("op7", "pts-iops"), ("op28", "pts-iops")}
    assert changed(IOPS, "block_size: [1024KiB, 64KiB, 4KiB]", "block_size: [1024KiB, 64KiB, 8KiB, 4KiB]") == both
    assert changed(IOPS, "runtime: 700ms", "runtime: 2s") == both
    assert changed(STUDY, "basis: op7", "basis: op28") == set()


def test_a_change_for_one_drive_affects_only_that_drive(project: Path) -> None:
    entry = "  - {protocol: pts-iops, scale: demo}\n"
    two = entry.replace("}", ", drives: [op28]}") + entry.replace("}", ", drives: [op7], set: {loop: {runtime: 2s}}}")
    assert changed(STUDY, entry, two) == {("op7", "pts-iops")}


def test_an_edited_plan_is_refused(tmp_path: Path, project: Path) -> None:
    plan = Campaign.load(STUDY).plans[0].plan
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert Plan.read(path).recording == plan.recording
    body = json.loads(plan.to_json())
    body["subject"]["class"]["threads"] = 99
    path.write_text(json.dumps(body))
    with pytest.raises(UserError, match="was edited"):
        Plan.read(path)
    path.write_text("{}")
    with pytest.raises(UserError, match="is not a plan"):
        Plan.read(path)


@pytest.mark.parametrize("text", ["", '{"context"', None], ids=["empty", "cut", "gone"])
def test_a_plan_in_a_recording_is_never_written_again(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=r"'drivelab run'"):
        Plan.read(path)
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(UserError, match=r"restore it from an archive .*'drivelab verify .*measure again") as told:
        Plan.read(path)
    assert "delete" not in str(told.value)


def test_a_pipe_or_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(OSError, match="is a pipe, a device or a socket"):
        Plan.read(tmp_path / "pipe")
    with pytest.raises(UserError, match="deep: is not a plan"):
        Plan.read(tmp_path / "deep")
