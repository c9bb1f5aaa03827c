"""Two virtual drives measured at the same time, in real time: they start together and run in parallel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from head_to_head import protocol
from stages import measured_together, planned
from yaml import safe_load

import drivelab
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.plan.file_system import FileSystem
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import file_system_device as making
from drivelab.run import guest
from drivelab.trace.capturing import mounts
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

pytestmark = [pytest.mark.device, pytest.mark.single]

PROTOCOL = protocol("1s", "4s", "4s", queue_depth=2)
MODEL = "{{serial: TOGETHER-{0}, capacity: 16MiB, over_provisioning: 28%, slc_cache: 0B}}"
DRIVES = ("together-a", "together-b")
MEASURED = "  - protocol: head-to-head\n"


@pytest.fixture
def sheet(project: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The drive sheet, with both drives."""
    monkeypatch.setenv("PYTHONPATH", str(Path(drivelab.__file__).parents[1]))
    Path("config/protocols/head-to-head.yaml").write_text(PROTOCOL)
    with Path("config/virtual_drives.yaml").open("a") as models, Path("config/drives.tsv").open("a") as sheet:
        for name in DRIVES:
            models.write(f"{name}: {MODEL.format(name[-1].upper())}\n")
            sheet.write(f"{name}\tvirtual:{name}\tTOGETHER-{name[-1].upper()}\tyes\t\n")
    return Path("config/drives.tsv")


def lines(plan: Plan, event: str) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == event]


@pytest.mark.usefixtures("sheet")
def test_drives_start_together_and_run_in_parallel() -> None:
    plans = planned(MEASURED, ", ".join(DRIVES))
    measured_together(plans)
    first, second = (lines(plan, "soak") for plan in plans)
    skews_s = [[line["skew_s"] for line in lines(plan, "started-together")] for plan in plans]
    assert skews_s[0] == skews_s[1]
    for step in range(2):
        skew_s = abs(first[step]["started_s"] - second[step]["started_s"])
        assert skews_s[0][step] == pytest.approx(skew_s, abs=1e-3)
        both_s = min(first[step]["ended_s"], second[step]["ended_s"]) - max(
            first[step]["started_s"], second[step]["started_s"]
        )
        assert both_s > 0, "the soaks ran one after the other"
    print("skew, ms:", [round(1000 * skew_s, 3) for skew_s in skews_s[0]])
    met = lines(plans[0], "together")
    assert [line["with"] for line in met] == [["together-b"]] * 3
    assert all(line["waited_s"] >= 0 for line in met)


WRITES = protocol("1s", "4s", queue_depth=2)
"""Files without a fill cannot be read."""
ON_EXT4 = "platforms: {on-ext4: {host: any, file_system: {type: ext4}}}\n"
IN_FOLDERS = "drives_sheet: config/folders.tsv\npurge: none\n"


@pytest.fixture
def folders(sheet: Path) -> Iterator[list[str]]:
    """Names of folders in a sheet: one on a file system of each drive, and another one beside the last."""
    rows = ["drive\tdevice\tserial\tdestructive\tnote\tkind\tsize"]
    with ExitStack() as stack:
        for name in DRIVES:
            model = DriveModel.from_mapping(name, safe_load(MODEL.format(name[-1].upper())))
            device = manage.start(name, model).device
            making.make(FileSystem("ext4"), device)
            mount = stack.enter_context(mounts.mounted("ext4", device))
            for folder in (mount / f"{name}-first", mount / f"{name}-second"):
                folder.mkdir()
                rows.append(f"{folder.name}\t{folder}\t{guest.file_system(mount, name)}\tno\t\tfile\t4MiB")
        Path("config/folders.tsv").write_text("\n".join(rows) + "\n")
        yield [f"{DRIVES[0]}-first", f"{DRIVES[1]}-first", f"{DRIVES[1]}-second"]


def assert_simultaneous(plans: list[Plan]) -> None:
    """Check that the soaks of all plans ran in parallel, and that their cells are sound."""
    (first, second) = (lines(plan, "soak")[0] for plan in plans)
    assert min(first["ended_s"], second["ended_s"]) - max(first["started_s"], second["started_s"]) > 0
    for plan in plans:
        assert (plan.recording_path / "recording.json").exists()
        assert collect(plan.recording_path, reduced=False)["cells"]["unsound"].isna().all()


@pytest.mark.usefixtures("sheet")
def test_new_file_systems_on_several_drives_are_measured_at_the_same_time() -> None:
    Path("config/protocols/head-to-head.yaml").write_text(WRITES)
    plans = planned(MEASURED, ", ".join(DRIVES), ON_EXT4)
    measured_together(plans)
    assert_simultaneous(plans)
    facts = [json.loads((plan.recording_path / "identity.json").read_text()) for plan in plans]
    assert [fact["file_system"] for fact in facts] == ["ext4", "ext4"]


def test_files_are_measured_at_the_same_time_unless_they_share_a_file_system(folders: list[str]) -> None:
    Path("config/protocols/head-to-head.yaml").write_text(WRITES)
    with pytest.raises(UserError, match=f"'{folders[1]}' and '{folders[2]}' are both on .* slow each other down"):
        planned(MEASURED, ", ".join(folders), IN_FOLDERS)
    plans = planned(MEASURED, ", ".join(folders[:2]), IN_FOLDERS)
    measured_together(plans)
    assert_simultaneous(plans)
