"""Cells of several workloads on a file: on a new file system of a drive, in a folder, and on a device for reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_plans import DRIVE, MODEL, SERIAL, made_plan
from stages import run_stages

from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.plan.file_system import FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import file_system_device as making
from drivelab.run import guest
from drivelab.run.measure import measure
from drivelab.trace.capturing import mounts
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

pytestmark = [pytest.mark.device, pytest.mark.single, pytest.mark.usefixtures("run_directory")]

MIB = 1 << 20
FILL = {"pattern": "sequential", "block_size_bytes": MIB, "capacity_multiple": 1, "queue_depth": 4}
READS: dict[str, Any] = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1,
                         "queue_depth": 2}  # fmt: skip
WRITES = {**READS, "read_share": 0, "block_size_bytes": 8192}
SCAN = {**READS, "pattern": "sequential", "block_size_bytes": 65536, "threads": 2}
TRIMS = {**WRITES, "operation": "trim"}
DRIVE_MODEL = {"capacity": "32MiB", "enabled": False}
FILE_BYTES = {"file_system": 12 * MIB, "file": 8 * MIB}


def cells(*beside: Any) -> list[dict[str, Any]]:
    """Return steps of one round of cells that read, each with other workloads beside it."""
    several = [{**READS, "runtime_s": 0.3, "beside": other} for other in beside]
    return [{"loop": {"cells": several, "order": "fixed", "cold_rounds": 0, "until": {"rounds": 1}}}]


def on_new_file_system(folder: Path, measured: list[dict[str, Any]]) -> Plan:
    spec = FileSystem("ext4").to_mapping()
    condition = {"purge": "auto", "fill": FILL, "settle_s": 0.0}
    return made_plan(folder, measured, condition, clock="wall", model=DRIVE_MODEL, file_system=spec)


def listed(folder: Path, measured: list[dict[str, Any]], device: Path | str, **drive: Any) -> Plan:
    """Return a plan of a subject of another kind than a drive, and list it in the sheet."""
    condition = {"purge": "none", **({"fill": FILL} if drive["kind"] == "file" else {})}
    plan = made_plan(folder, measured, condition, clock="wall", drive=drive)
    size = drive.get("size_bytes", "")
    Path(plan.context["drives_sheet"]).write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tsize\n"
        f"{DRIVE}\t{device}\t{drive['serial']}\tno\t\t{drive['kind']}\t{size and f'{size >> 20}MiB'}\n"
    )
    return Plan(plan.subject, {**plan.context, "device": str(device)})


def in_folder(folder: Path, measured: list[dict[str, Any]], place: Path) -> Plan:
    serial = guest.file_system(place, "test")
    return listed(folder, measured, place, serial=serial, kind="file", size_bytes=FILE_BYTES["file"])


@pytest.fixture
def device() -> str:
    """The device of the drive, with a file system."""
    device = manage.start(DRIVE, DriveModel.from_mapping(DRIVE, {**MODEL, **DRIVE_MODEL})).device
    making.make(FileSystem("ext4"), device)
    return device


@pytest.fixture
def place(device: str) -> Iterator[Path]:
    """A folder on the drive."""
    with mounts.mounted("ext4", device) as mount:
        yield mount


def measured(plan: Plan, folder: Path) -> Any:
    """Run all stages; return the table of cells."""
    run_stages(plan, folder)
    return collect(plan.recording_path, reduced=False)["cells"].sort_values("cell")


@pytest.mark.parametrize("kind", FILE_BYTES)
def test_all_workloads_run_on_the_file_at_the_same_time(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Workloads of different directions share a group of fio, others have one each."""
    steps = cells(WRITES, [SCAN, WRITES])
    if kind == "file":
        plan = in_folder(tmp_path, steps, request.getfixturevalue("place"))
    else:
        plan = on_new_file_system(tmp_path, steps)
    table = measured(plan, tmp_path)
    assert table["unsound"].isna().all()
    assert [list(row.workloads) for row in table.itertuples()] == [
        ["reads", "writes"], ["RND 4KiB 100/0 T1Q2", "SEQ 64KiB 100/0 T2Q2", "RND 8KiB 0/100 T1Q2"],
    ]  # fmt: skip
    for row in table.itertuples():
        assert min(row.workload_ios) > 0
        assert sum(row.workload_ios) == row.read_ios + row.write_ios
    read_bytes = sum(4096 * row.workload_ios[0] for row in table.itertuples())
    written_bytes = sum(8192 * row.workload_ios[-1] for row in table.itertuples())
    counters = manage.counters(DRIVE)
    assert counters["host_read_bytes"] >= read_bytes, "the page cache answers no read"
    assert counters["host_write_bytes"] >= written_bytes + FILE_BYTES[kind]


def test_trims_beside_others_are_refused_before_anything_is_touched(tmp_path: Path) -> None:
    plan = on_new_file_system(tmp_path, cells([WRITES, TRIMS]))
    with pytest.raises(UserError, match=r"its I/Os trim, which a file system cannot; .* Nothing was written"):
        measure(plan, tmp_path / "none.json")
    assert manage.status() == []
    plan = in_folder(tmp_path, cells([WRITES, TRIMS]), tmp_path)
    with pytest.raises(UserError, match=r"its I/Os trim, which the kind 'file' cannot; .* Nothing was written"):
        measure(plan, tmp_path / "none.json")


def test_a_device_for_reading_takes_several_workloads_that_read(tmp_path: Path, device: str) -> None:
    before = manage.counters(DRIVE)["host_write_bytes"]
    plan = listed(tmp_path, cells(SCAN), device, serial=SERIAL, kind="read-only")
    (row,) = measured(plan, tmp_path).itertuples()
    assert min(row.workload_ios) > 0
    plan = listed(tmp_path, cells([SCAN, WRITES]), device, serial=SERIAL, kind="read-only")
    with pytest.raises(UserError, match="the protocol writes, and the sheet lists this device for reading only"):
        measure(plan, tmp_path / "none.json")
    assert manage.counters(DRIVE)["host_write_bytes"] == before
