"""The header of a test says what was measured."""

from __future__ import annotations

from drivelab.report.header import _drive


def test_a_folder_shows_what_is_below_and_a_virtual_disk_is_no_hard_disk() -> None:
    row = {"composition": "ext4; virtual disk (virtio)", "transport": "virtio", "rotational": True, "kind": "file"}
    facts = {fact.name: fact.value for fact in _drive(row, "home")}
    assert facts["Consists of"] == "ext4; virtual disk (virtio)"
    assert "Kind" not in facts
    assert {fact.name: fact.value for fact in _drive({**row, "transport": "sata"}, "home")}["Kind"] == "hard disk"
