"""Targets of a replay that are refused before a device is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.run.replays.replay_targets import opened_targets


@pytest.mark.parametrize("other", ["p2", "disk"])
def test_two_volumes_on_one_disk_are_refused(tmp_path: Path, other: str) -> None:
    sheet = tmp_path / "drives.tsv"
    sheet.write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
        "p1\t/dev/disk/by-partuuid/1\t1\tyes\t\tpartition\tS1\n"
        "p2\t/dev/disk/by-partuuid/2\t2\tyes\t\tpartition\tS1\n"
        "disk\t/dev/disk/by-id/nvme-1\tS1\tyes\t\t\t\n"
    )
    with (
        pytest.raises(UserError, match="the targets of volumes 'log' and 'data' are both on the disk S1, which only"),
        opened_targets({"log": "p1", "data": other}, sheet, destroy=True),
    ):
        pass
