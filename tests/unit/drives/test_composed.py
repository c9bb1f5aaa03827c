"""Partitions, volumes and arrays on fake sysfs trees: their members, and everything else on their disks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from device_trees import WAYS, Tree

from drivelab.drives.composed import Subject, other_kind
from drivelab.drives.device_mapper import Mapping, parse

GROUP, OTHER_GROUP = "G" * 32, "H" * 32


def volume_uuid(name: str, group: str = GROUP) -> str:
    return f"LVM-{group}{name:x<32}"


@dataclass
class Stack:
    """A subject of a tree, with the tables of its mappings."""

    tree: Tree
    subject: str
    siblings: list[str]
    """What lies beside it on its disks and may exist, unused."""
    tables: dict[str, str] = field(default_factory=dict)

    def seen(self) -> Subject:
        return Subject(self.subject, self.tree.host, lambda disk: f"S-{disk}", self.mapping)

    def mapping(self, name: str) -> Mapping:
        return Mapping(name, self.tree.number(name), tuple(parse(self.tables[name])))

    def refusal(self) -> str | None:
        subject = self.seen()
        return subject.unfit() or subject.in_use()


def disks(root: Path) -> Tree:
    """Return a tree with two disks of three partitions each, one after the other."""
    tree = Tree(root, {"sdz": 3, "sdy": 3})
    for disk in ("sdz", "sdy"):
        for number in (1, 2, 3):
            tree.place(f"{disk}{number}", 2048 + (number - 1) * 8192, 8192)
    return tree


def partition(root: Path) -> Stack:
    return Stack(disks(root), "sdz2", ["sdz1", "sdz3"])


def linear(root: Path) -> Stack:
    """A logical volume over partitions of two disks, beside another of its group."""
    tree = disks(root)
    data = tree.composed("dm", "sdz2", "sdy2", uuid=volume_uuid("data"))
    other = tree.composed("dm", "sdz2", uuid=volume_uuid("other"))
    at_z, at_y = tree.number("sdz2"), tree.number("sdy2")
    tables = {data: f"0 2048 linear {at_z} 2048\n2048 2048 linear {at_y} 2048\n", other: f"0 2048 linear {at_z} 4096\n"}
    return Stack(tree, data, ["sdz1", "sdz3", "sdy1", "sdy3", other], tables)


def thin(root: Path) -> Stack:
    """A thin volume, with its pool and another thin volume, as LVM stacks them."""
    tree = disks(root)
    parts = [tree.composed("dm", "sdz2", uuid=volume_uuid(name) + end) for name, end in
             (("meta", "-tmeta"), ("data", "-tdata"))]  # fmt: skip
    pool = tree.composed("dm", *parts, uuid=volume_uuid("pool") + "-tpool")
    whole = tree.composed("dm", pool, uuid=volume_uuid("pool") + "-pool")
    volumes = [tree.composed("dm", pool, uuid=volume_uuid(name)) for name in ("one", "two")]
    number, disk = tree.number(pool), tree.number("sdz2")
    tables = {
        parts[0]: f"0 1024 linear {disk} 2048",
        parts[1]: f"0 4096 linear {disk} 3072",
        pool: f"0 4096 thin-pool {tree.number(parts[0])} {tree.number(parts[1])} 128 0 1 skip_block_zeroing",
        whole: f"0 4096 linear {number} 0",
        volumes[0]: f"0 2048 thin {number} 1",
        volumes[1]: f"0 2048 thin {number} 2",
    }
    return Stack(tree, volumes[0], ["sdz1", "sdz3", volumes[1], whole], tables)


def crypt(root: Path) -> Stack:
    """dm-crypt on an array of two partitions."""
    tree = disks(root)
    array = tree.composed("md", "sdz1", "sdy1")
    mapping = tree.composed("dm", array, uuid="CRYPT-LUKS2-1234-secret")
    table = f"0 4096 crypt aes-xts-plain64 :64:logon:cryptsetup:x 0 {tree.number(array)} 32768"
    return Stack(tree, mapping, ["sdz2", "sdz3", "sdy2", "sdy3"], {mapping: table})


def array(root: Path) -> Stack:
    """An array of a partition and a whole disk, with partitions of its own."""
    tree = disks(root)
    whole = tree.composed("md", "sdz1", tree.add("sdx"))
    return Stack(tree, whole, ["sdz2", "sdz3", tree.add(f"{whole}p1", inside=whole)])


def part_of_array(root: Path) -> Stack:
    tree = disks(root)
    whole = tree.composed("md", "sdz1", "sdy1")
    parts = [tree.add(f"{whole}p{number}", inside=whole) for number in (1, 2)]
    for number, part in enumerate(parts):
        tree.place(part, 1024 * (number + 1), 1024)
    return Stack(tree, parts[0], ["sdz2", "sdz3", "sdy2", "sdy3", parts[1]])


def multipath(root: Path) -> Stack:
    """A partition that kpartx maps on a disk with two paths."""
    tree = Tree(root, {"sdz": 0, "sdy": 0})
    for path in ("sdz", "sdy"):
        (tree.directory(path) / "wwid").write_text("naa.5000\n")
    whole = tree.composed("dm", "sdz", "sdy", uuid="mpath-35000")
    parts = [tree.composed("dm", whole, uuid=f"part{number}-mpath-35000") for number in (1, 2)]
    paths = f"round-robin 0 2 1 {tree.number('sdz')} 1 {tree.number('sdy')} 1"
    tables = {
        whole: f"0 8192 multipath 0 0 1 1 {paths}",
        **{part: f"0 1024 linear {tree.number(whole)} {1024 * at}" for at, part in enumerate(parts, start=1)},
    }
    return Stack(tree, parts[0], [parts[1]], tables)


STACKS: dict[str, tuple[Callable[[Path], Stack], str, set[str]]] = {
    "partition": (partition, "partition", {"sdz"}),
    "logical volume": (linear, "volume", {"sdz", "sdy"}),
    "thin volume": (thin, "volume", {"sdz"}),
    "dm-crypt on an array": (crypt, "volume", {"sdz", "sdy"}),
    "array": (array, "array", {"sdz", "sdx"}),
    "partition of an array": (part_of_array, "partition", {"sdz", "sdy"}),
    "partition of a multipath disk": (multipath, "volume", {"sdz", "sdy"}),
}
ON_DISKS = sorted(set(WAYS) - {"read-only"})


@pytest.mark.parametrize("name", STACKS)
def test_an_unused_subject_has_its_disks_and_no_holder(tmp_path: Path, name: str) -> None:
    make, kind, below = STACKS[name]
    stack = make(tmp_path)
    assert set(stack.seen().disks) == below
    assert stack.refusal() is None
    assert stack.seen().wrong_members([f"S-{disk}" for disk in below]) is None
    assert other_kind(kind, stack.subject, stack.tree.sys) is None
    for other in {"drive", "partition", "volume", "array"} - {kind}:
        assert other_kind(other, stack.subject, stack.tree.sys) is not None


@pytest.mark.parametrize("name", STACKS)
def test_members_must_be_exactly_the_disks(tmp_path: Path, name: str) -> None:
    make, _, below = STACKS[name]
    subject = make(tmp_path).seen()
    serials = [f"S-{disk}" for disk in below]
    assert "which 'members' does not name" in str(subject.wrong_members(serials[1:]))
    assert "does not lie on the disk S-other" in str(subject.wrong_members([*serials, "S-other"]))
    nameless = Subject(subject.name, subject.host, lambda disk: None, subject.table)
    assert "has no serial number" in str(nameless.wrong_members(serials))


@pytest.mark.parametrize("name", STACKS)
def test_siblings_are_found(tmp_path: Path, name: str) -> None:
    stack = STACKS[name][0](tmp_path)
    inside = {part for part in stack.siblings if part.startswith(f"{stack.subject}p")}
    assert set(stack.seen().siblings) == set(stack.siblings) - inside


def on_a_disk(stack: Stack, node: str) -> bool:
    """Return whether a node is a disk or a partition of one: only disks have a second path."""
    return bool({node, stack.tree.directory(node).parent.name} & set(stack.seen().disks))


@pytest.mark.parametrize("name", ["partition", "logical volume", "thin volume", "dm-crypt on an array"])
@pytest.mark.parametrize("beside", [True, False], ids=["siblings", "subject and legs"])
def test_any_use_is_refused(tmp_path: Path, name: str, *, beside: bool) -> None:
    """Each way of use on one of the nodes, in turn. Mappings, arrays and loop devices over a leg count too."""
    for number, way in enumerate(ON_DISKS):
        stack = STACKS[name][0](tmp_path / str(number))
        nodes = stack.siblings if beside else sorted(stack.seen().composition.chain)
        if "another path" in way:
            nodes = [node for node in nodes if on_a_disk(stack, node)]
        node = nodes[number % len(nodes)]
        WAYS[way](stack.tree, node)
        assert stack.refusal() is not None, (way, node)


@pytest.mark.parametrize("name", STACKS)
def test_a_read_only_part_is_refused(tmp_path: Path, name: str) -> None:
    stack = STACKS[name][0](tmp_path)
    for node in stack.seen().composition.chain:
        (stack.tree.directory(node) / "ro").write_text("1\n")
        assert stack.refusal() == f"{node} is read-only"
        (stack.tree.directory(node) / "ro").write_text("0\n")


def test_a_volume_of_another_group_on_the_same_disk_is_refused(tmp_path: Path) -> None:
    stack = linear(tmp_path)
    foreign = stack.tree.composed("dm", "sdz3", uuid=volume_uuid("data", OTHER_GROUP))
    assert stack.refusal() == f"sdz3 is held by {foreign} (device mapper, md or similar)"


def test_a_mapping_without_a_group_on_an_own_leg_is_refused(tmp_path: Path) -> None:
    stack = linear(tmp_path)
    foreign = stack.tree.composed("dm", "sdz2", uuid="CRYPT-PLAIN-x")
    assert f"sdz2 is held by {foreign}" in str(stack.refusal())


def test_a_sibling_volume_that_carries_something_is_refused(tmp_path: Path) -> None:
    stack = linear(tmp_path)
    above = stack.tree.composed("md", stack.siblings[-1])
    assert f"is held by {above}" in str(stack.refusal())


def test_a_second_path_outside_of_the_mapping_counts(tmp_path: Path) -> None:
    stack = multipath(tmp_path)
    third = stack.tree.add("sdx")
    (stack.tree.directory(third) / "wwid").write_text("naa.5000\n")
    assert stack.refusal() is None
    stack.tree.mount(third)
    assert "sdx is mounted" in str(stack.refusal())


TABLES: dict[str, tuple[Callable[[Path], Stack], Callable[[Stack], tuple[str, str]], str]] = {
    "a snapshot's origin": (
        linear, lambda stack: (stack.subject, "0 4096 snapshot-origin 253:9"), "has the target 'snapshot-origin'"
    ),
    "a missing disk": (
        linear, lambda stack: (stack.subject, "0 2048 linear 99:2 2048\n2048 2048 error"), "has the target 'error'"
    ),
    "no table": (linear, lambda stack: (stack.subject, ""), "has no active table"),
    "blocks of a sibling": (
        linear,
        lambda stack: (stack.siblings[-1], f"0 2048 linear {stack.tree.number('sdz2')} 4095"),
        "use the same blocks of sdz2",
    ),
    "blocks of a sibling, by stripes": (
        linear,
        lambda stack: (
            stack.siblings[-1],
            f"0 2048 striped 2 128 {stack.tree.number('sdz2')} 3072 {stack.tree.number('sdz2')} 9000",
        ),
        "use the same blocks of sdz2",
    ),
    "a table that drivelab cannot read": (
        linear,
        lambda stack: (stack.siblings[-1], f"0 2048 future {stack.tree.number('sdz2')} 90000"),
        "use the same blocks of sdz2",
    ),
    "the number of another thin volume": (
        thin,
        lambda stack: (stack.siblings[-2], stack.tables[stack.subject]),
        "use the same blocks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_do_not_keep_to_their_own_blocks_are_refused(tmp_path: Path, name: str) -> None:
    make, change, reason = TABLES[name]
    stack = make(tmp_path)
    assert stack.refusal() is None
    mapping, table = change(stack)
    stack.tables[mapping] = table
    assert reason in str(stack.refusal())


def test_a_thin_pool_is_refused_under_both_names(tmp_path: Path) -> None:
    stack = thin(tmp_path)
    whole = stack.siblings[-1]
    pool = stack.seen().composition.legs
    stack.subject = whole
    assert "shows all data of a thin pool" in str(stack.refusal())
    stack.subject = next(leg for leg in pool if "thin-pool" in stack.tables.get(leg, ""))
    assert "is a thin pool" in str(stack.refusal())


def test_tables_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    def fails(name: str) -> Mapping:
        raise OSError("Permission denied")

    stack = linear(tmp_path)
    subject = Subject(stack.subject, stack.tree.host, lambda disk: disk, fails)
    assert "cannot be read (Permission denied)" in str(subject.unfit())


STATES = {
    "suspended mapping": (linear, "dm-8", "dm/suspended", "1", "is suspended"),
    "stopped array": (array, "md-9", "md/array_state", "inactive", "the array md-9 is inactive"),
    "read-only array": (array, "md-9", "md/array_state", "readonly", "is readonly"),
    "host-managed disk": (array, "sdx", "queue/zoned", "host-managed", "host-managed zoned"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_does_not_accept_writes_is_refused(tmp_path: Path, name: str) -> None:
    make, node, file, value, reason = STATES[name]
    stack = make(tmp_path)
    path = stack.tree.directory(node) / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{value}\n")
    assert reason in str(stack.refusal())


def test_partitions_that_overlap_are_refused(tmp_path: Path) -> None:
    stack = partition(tmp_path)
    stack.tree.place("sdz3", 2048 + 2 * 8192 - 1, 8192)
    assert stack.refusal() == "sdz2 and sdz3 share blocks of sdz"


def test_a_disk_used_whole_with_partitions_is_refused(tmp_path: Path) -> None:
    tree = disks(tmp_path)
    volume = tree.composed("dm", "sdz", uuid=volume_uuid("data"))
    stack = Stack(tree, volume, [], {volume: f"0 2048 linear {tree.number('sdz')} 2048"})
    assert stack.refusal() == "sdz is used as a whole, but has partitions (sdz1)"


def test_an_unknown_stack_is_refused(tmp_path: Path) -> None:
    """bcache has slaves, but is neither a mapping nor an array."""
    tree = disks(tmp_path)
    cache = tree.add("bcache0")
    (tree.directory(cache) / "slaves/sdz2").symlink_to(tree.directory("sdz2"))
    volume = tree.composed("dm", cache, uuid=volume_uuid("data"))
    stack = Stack(tree, volume, [], {volume: f"0 2048 linear {tree.number(cache)} 2048"})
    assert "bcache0 consists of other devices" in str(stack.refusal())
    assert other_kind("volume", cache, tree.sys) == "a whole drive"
