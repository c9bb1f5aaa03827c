"""The state of an array, from the kernel's files and from dm-raid's status."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_trees import Tree

from drivelab.drives import described
from drivelab.drives.arrays import array_state
from drivelab.drives.described import composition_words


def array(root: Path, **files: str) -> tuple[Tree, str]:
    tree = Tree(root, {"sdz": 1, "sdy": 1})
    name = tree.composed("md", "sdz1", "sdy1")
    for file, text in files.items():
        (tree.directory(name) / "md" / file).write_text(f"{text}\n")
    return tree, name


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "clean"),
        ({"degraded": "0", "sync_action": "idle", "sync_completed": "none", "resync_start": "none"}, "clean"),
        ({"degraded": "1", "sync_action": "idle"}, "degraded, 1 missing or not filled"),
        ({"degraded": "1", "sync_action": "frozen"}, "degraded, 1 missing or not filled"),
        (
            {"degraded": "1", "sync_action": "recover", "sync_completed": "250 / 1000"},
            "rebuilding, 1 missing or not filled, 25 % done",
        ),
        ({"degraded": "0", "sync_action": "resync", "sync_completed": "500 / 1000"}, "resyncing, 50 % done"),
        ({"degraded": "0", "sync_action": "check", "sync_completed": "none"}, "resyncing"),
        ({"degraded": "0", "sync_action": "idle", "resync_start": "0"}, "resyncing"),
    ],
)
def test_state_of_md(tmp_path: Path, files: dict[str, str], words: str) -> None:
    tree, name = array(tmp_path, **files)
    for subject in (name, tree.add(f"{name}p1", inside=name)):
        state = array_state(subject, tree.sys)
        assert state is not None
        assert (state.name, state.words) == (name, words)


def test_a_drive_has_no_array_and_the_worst_of_several_counts(tmp_path: Path) -> None:
    tree, first = array(tmp_path, degraded="0")
    assert array_state("sdz", tree.sys) is None
    second = tree.composed("md", tree.add("sdx"), tree.add("sdw"))
    (tree.directory(second) / "md/degraded").write_text("1\n")
    above = tree.composed("md", first, second)
    state = array_state(above, tree.sys)
    assert state is not None
    assert (state.name, state.state) == (second, "degraded")


def test_a_rebuild_may_write_the_whole_member_without_breaking_a_seal(tmp_path: Path) -> None:
    """A seal counts writes to the members; a rebuild writes to one of them between the stages."""
    allowed = {}
    for action in ("idle", "recover"):
        tree, name = array(tmp_path / action, degraded="1", sync_action=action)
        for disk, sectors in (("sdz", 2000), ("sdy", 3000)):
            (tree.directory(disk) / "size").write_text(f"{sectors}\n")
        allowed[action] = described._own_writes_bytes(name, ("sdz", "sdy"), tree.sys)
    assert allowed == {"idle": described._RECORDS_BYTES, "recover": described._RECORDS_BYTES + 3000 * 512}


def test_composition_in_words(tmp_path: Path) -> None:
    tree, name = array(tmp_path, level="raid5", raid_disks="3", chunk_size="524288", layout="2", degraded="0")
    tree.place("sdz1", 2048, 8192)
    tree.place("sdy1", 63, 8192)
    assert composition_words("sdz", tree.sys) == ""
    assert composition_words("sdz1", tree.sys) == "partition at byte 1,048,576 (aligned to 1 MiB) on 1 drive"
    assert composition_words(name, tree.sys) == (
        "md raid5 of 3, chunk 512 KiB, layout 2 on partition at byte 32,256 (aligned to 512 B) and partition at byte "
        "1,048,576 (aligned to 1 MiB) on 2 drives"
    )
