"""Mount points whose names any user can choose."""

from __future__ import annotations

import os
from pathlib import Path

from drivelab.core.files import mount_lines


def test_a_mount_point_may_have_any_name(tmp_path: Path) -> None:
    lines = b"1 0 8:1 / /a\xff\x0c\r\x1cb rw - ext4 /dev/sda1 rw\n2 0 8:2 / /c\\040d rw - xfs /dev/sda2 rw\n"
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_bytes(lines)
    first, second = mount_lines(tmp_path)
    assert os.fsencode(first[4]) == b"/a\xff\x0c\r\x1cb"
    assert (second[4], second[second.index("-") + 1]) == ("/c\\040d", "xfs")
