"""A partition of a virtual drive as a subject: approval, purge, and what lies beside it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from partitions import MIB, TABLE, UUID, Partitioned, write
from writers import writer

from drivelab.core.errors import UserError
from drivelab.drives import guard
from drivelab.drives.purge import purge
from drivelab.plan.drive_sheet import SheetRow

pytestmark = pytest.mark.device


def refusal(partitioned: Partitioned, row: SheetRow | None = None) -> str:
    with pytest.raises(UserError) as caught:
        guard.approve(row or partitioned.row, partitioned.row.device)
    return str(caught.value)


def test_a_partition_that_the_table_has_elsewhere_is_refused(partitioned: Partitioned) -> None:
    """The kernel still has the old partition, after somebody wrote another table."""
    table = TABLE.replace("start=5MiB, size=6MiB", "start=6MiB, size=5MiB")
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", partitioned.drive.device], input=table,
                   text=True, check=True)  # fmt: skip
    assert "has no identifier" in refusal(partitioned)


@pytest.mark.parametrize("which", ["drive", 1, 2, 3])
def test_a_writer_anywhere_on_the_drive_is_refused(partitioned: Partitioned, which: str | int) -> None:
    node = partitioned.drive.device if isinstance(which, str) else partitioned.part(which)
    with writer(Path(node)):
        assert "for writing" in refusal(partitioned)


def test_a_sibling_held_exclusively_is_refused(partitioned: Partitioned) -> None:
    descriptor = os.open(partitioned.part(3), os.O_RDONLY | os.O_EXCL)
    try:
        assert "is on the same disks" in refusal(partitioned)
        with pytest.raises(UserError, match=r"is on the same disks|cannot hold"):
            guard.held(partitioned.row, partitioned.row.device).__enter__()
    finally:
        os.close(descriptor)


def test_a_held_partition_keeps_others_off_its_drive(partitioned: Partitioned, tmp_path: Path) -> None:
    """Nobody can mount a sibling, and no other stage can use the drive or a sibling."""
    subprocess.run(["mkfs.ext4", "-q", partitioned.part(1)], check=True)
    whole = SheetRow("test", "virtual:test", "TEST-1", True, "", "drives.tsv line 3")
    with guard.held(partitioned.row, partitioned.row.device) as (held, hold):
        assert (held.kind, held.serial, held.disks) == ("partition", UUID, (Path(partitioned.drive.device).name,))
        done = subprocess.run(["mount", partitioned.part(1), str(tmp_path)], capture_output=True, check=False)
        assert done.returncode != 0
        with pytest.raises(UserError, match="another drivelab process"):
            guard.held(whole, partitioned.drive.device).__enter__()
        with hold.released():
            guard.confirm(partitioned.row, held)
    with guard.held(whole, partitioned.drive.device):
        pass


@pytest.mark.parametrize("method", ["auto", "trim", "overwrite"])
def test_a_purge_leaves_everything_else_as_it_was(partitioned: Partitioned, method: str) -> None:
    before = partitioned.content()
    with guard.held(partitioned.row, partitioned.row.device) as (held, _):
        done = purge(held, method)
        assert held.neighbours is not None
        facts = held.neighbours.verify("part")
    assert done["method"] == ("trim" if method == "auto" else method)
    assert "whole partition" in done["title"]
    assert facts["changed"] == []
    after = partitioned.content()
    assert after[: 5 * MIB] == before[: 5 * MIB]
    assert after[11 * MIB :] == before[11 * MIB :]
    assert not any(after[5 * MIB : 11 * MIB])


def test_a_method_for_whole_drives_is_refused(partitioned: Partitioned) -> None:
    with (
        guard.held(partitioned.row, partitioned.row.device) as (held, _),
        pytest.raises(UserError, match="would erase more than the partition"),
    ):
        purge(held, "nvme-format-user-data")


@pytest.mark.parametrize("place", [512, 5 * MIB - 4096, 11 * MIB, 16 * MIB - 512])
def test_a_change_beside_the_partition_is_an_error(partitioned: Partitioned, place: int) -> None:
    """In the table, at the end of a sibling, at its start, in the backup of the table."""
    message = "DATA OUTSIDE OF THE PARTITION CHANGED while drivelab used 'part'"
    with pytest.raises(UserError, match=message), guard.held(partitioned.row, partitioned.row.device):
        write(partitioned.drive.device, place)
