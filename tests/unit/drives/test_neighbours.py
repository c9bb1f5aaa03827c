"""The places beside a partition that drivelab compares."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp

import pytest
from device_trees import Tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivelab.drives import neighbours
from drivelab.drives.neighbours import Area, areas

SECTOR = 512


def tree_of(root: Path, edges: list[int], block: int) -> tuple[Tree, int]:
    """Return a tree with the disk sdz, and its size in bytes; its partitions begin and end at the edges, in blocks."""
    sectors = block // SECTOR
    tree = Tree(root, {"sdz": (len(edges) - 1) // 2})
    for number in range((len(edges) - 1) // 2):
        begin, end = edges[2 * number], edges[2 * number + 1]
        tree.place(f"sdz{number + 1}", begin * sectors, (end - begin) * sectors)
    (tree.directory("sdz") / "size").write_text(f"{edges[-1] * sectors}\n")
    (tree.directory("sdz") / "queue").mkdir()
    (tree.directory("sdz") / "queue/logical_block_size").write_text(f"{block}\n")
    return tree, edges[-1] * block


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 10**6), min_size=3, max_size=7, unique=True).filter(lambda edges: len(edges) % 2 == 1),
    st.sampled_from([512, 4096]),
    st.integers(0, 2**32),
    st.data(),
)
def test_everything_but_the_partition_is_covered(
    tmp_path: Path, edges: list[int], block: int, seed: int, data: st.DataObject
) -> None:
    """First and last block of each other partition and of each gap; never a block of the partition itself."""
    edges = sorted(edges)
    tree, size = tree_of(Path(mkdtemp(dir=tmp_path)), edges, block)
    number = data.draw(st.integers(0, (len(edges) - 1) // 2 - 1))
    own = (edges[2 * number] * block, edges[2 * number + 1] * block)
    found = areas(f"sdz{number + 1}", tree.sys, random.Random(seed))

    covered: set[tuple[int, int]] = set()
    for area in found:
        begin = 0
        if area.device != "sdz":
            begin = int((tree.directory(area.device) / "start").read_text()) * SECTOR
        for offset, length in area.places:
            assert offset % block == length % block == 0
            covered.add((begin + offset, begin + offset + length))
    assert all(end <= own[0] or begin >= own[1] for begin, end in covered)
    assert all(0 <= begin < end <= size for begin, end in covered)
    for begin, end in pairwise([0, *(edge * block for edge in edges)]):
        if (begin, end) != own:
            assert any(low <= begin < high for low, high in covered)
            assert any(low < end <= high for low, high in covered)


def test_a_change_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (Area("sdz1", "sdz1", ((0, 4096),)), Area("sdz", "the end of sdz", ((8192, 4096),)))
    written = {"sdz1": "a", "sdz": "b"}
    monkeypatch.setattr(neighbours, "_checksum", lambda area: written[area.device])
    seen = neighbours.Neighbours(found, ("a", "b"))
    assert seen.verify("part") == {"areas": ["sdz1", "the end of sdz"], "places": 2, "changed": []}
    written["sdz"] = "c"
    with pytest.raises(neighbours.UserError, match=r"OUTSIDE OF THE PARTITION CHANGED.*'part': the end of sdz\."):
        seen.verify("part")


def test_a_change_is_printed_beside_another_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(neighbours, "_checksum", lambda area: "c")
    seen = neighbours.Neighbours((Area("sdz1", "sdz1", ((0, 4096),)),), ("a",))
    with pytest.raises(KeyboardInterrupt), seen.compared_at_end("part"):
        raise KeyboardInterrupt
    assert "OUTSIDE OF THE PARTITION CHANGED while drivelab used 'part': sdz1" in capsys.readouterr().err
