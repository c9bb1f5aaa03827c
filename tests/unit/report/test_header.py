"""The header of a test says what was measured."""

from __future__ import annotations

from drivelab.report.header import _drive, _preparation


def test_a_folder_shows_what_is_below_and_a_virtual_disk_is_no_hard_disk() -> None:
    row = {"composition": "ext4; virtual disk (virtio)", "transport": "virtio", "rotational": True, "kind": "file"}
    facts = {fact.name: fact.value for fact in _drive(row, "home")}
    assert facts["Consists of"] == "ext4; virtual disk (virtio)"
    assert "Kind" not in facts
    assert {fact.name: fact.value for fact in _drive({**row, "transport": "sata"}, "home")}["Kind"] == "hard disk"


def test_a_page_says_in_which_state_an_array_was_measured() -> None:
    for states, words in (
        (["rebuilding", "clean"], "rebuilding, then clean"),
        (["degraded"] * 2, "degraded"),
        ([], None),
    ):
        facts = {fact.name: fact.value for fact in _preparation([{"condition": {"array_states": states}}], loops=False)}
        assert facts.get("State of the array") == words
