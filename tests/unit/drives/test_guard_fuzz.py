"""The guard must not approve a used drive in simulated hosts ("worlds") with known use.

The environment variable GUARD_WORLDS is the number of worlds, GUARD_SEED the first seed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from device_trees import WAYS, Tree

from drivelab.core.errors import UserError
from drivelab.drives import guard
from drivelab.drives.node import Node
from drivelab.drives.signatures import Signature
from drivelab.plan.drive_sheet import SheetRow

WORLDS = int(os.environ.get("GUARD_WORLDS", "300"))
SEED = int(os.environ.get("GUARD_SEED", "1"))
DRIVES = ("sdz", "sdy", "nvme0n1", "nvme1n1", "loop5")
MOUNTS = ("fuse.sshfs", "nfs4", "fuse.fuse-overlayfs", "overlay", "ext4")


@dataclass
class World:
    """A host with drives, and the request to the guard about one of them."""

    tree: Tree
    row: SheetRow
    serials: dict[str, str]
    opens: str
    """Drive that the sheet's path leads to, by the node's number."""
    written: list[Signature] = field(default_factory=list)
    uses: Counter[str] = field(default_factory=Counter)
    """Uses of each drive's medium."""

    @property
    def may_be_destroyed(self) -> bool:
        return self.serials[self.opens] == self.row.serial and not self.uses[self.opens]


def make(root: Path, dice: random.Random) -> World:
    """Make a world in which every use of a drive is known."""
    partitions = {drive: dice.choice((0, 0, 1, 3)) for drive in DRIVES}
    tree = Tree(root, partitions)
    tree.image("loop5", (64769, 12))
    system = f"{dice.choice(MOUNTS)} somewhere rw"
    with (tree.proc / "self/mountinfo").open("a") as file:
        file.write(f"20 0 0:99 / / rw - {system}\n21 20 0:5 / /dev rw - devtmpfs udev rw\n")
    wanted = dice.choice(DRIVES)
    serials = {drive: f"S-{drive}" for drive in DRIVES}
    row = SheetRow("a", f"/dev/disk/by-id/{wanted}", serials[wanted], True, "", "drives.tsv line 2")
    stale = dice.random() < 0.2
    world = World(tree, row, serials, dice.choice(DRIVES) if stale else wanted)
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        _use(world, dice)
    if dice.random() < 0.1:  # the node of this name now leads elsewhere
        name = dice.choice(DRIVES)
        tree.dev[f"/dev/{name}"] = tree.number(dice.choice(DRIVES))
    return world


def _use(world: World, dice: random.Random) -> None:
    tree = world.tree
    drive = dice.choice((world.opens, world.opens, *DRIVES))
    node = dice.choice([name for name in tree.nodes if name == drive or name.startswith((f"{drive}p", f"{drive}1"))])
    kind = dice.choice((*sorted(WAYS), "a member", "an image's other loop device"))
    if kind == "a member":
        world.written.append(Signature(node, "LVM2_member", ""))
    elif kind == "an image's other loop device" or (drive == "loop5" and "another path" in kind):
        drive = "loop5"
        tree.mount(tree.image(tree.add(f"loop1{len(tree.nodes)}"), (64769, 12)), "/mnt/image")
    elif kind == "read-only":
        (tree.directory(drive) / "ro").write_text("1\n")
    else:
        try:
            WAYS[kind](tree, node)
        except FileExistsError:  # a world has at most one loop device over a drive and one exported drive
            return
    world.uses[drive] += 1


def decide(world: World, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Return the guard's refusal in a world, or None if it approves; O_EXCL of the kernel does not help here."""
    host = world.tree.host
    node = Node(9, world.opens, world.tree.number(world.opens), "7")
    monkeypatch.setattr(guard.node, "opened", lambda path: nullcontext(node))
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: world.serials[name])
    monkeypatch.setattr(guard.signatures, "read", lambda nodes: [sign for sign in world.written if sign.node in nodes])
    monkeypatch.setattr(guard, "holder", lambda device, name, own_hold=False: HOLDER(device, name, host))
    try:
        guard.approve(world.row, world.row.device)
    except UserError as error:
        return str(error)
    return None


HOLDER = guard.holder


@pytest.mark.usefixtures("impatient")
def test_no_drive_in_use_is_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_exclusive", None), ("_twin_in_use", None), ("_read_problem", None)):
        monkeypatch.setattr(guard, name, lambda *_, value=value: value)
    outcomes: Counter[str] = Counter()
    for seed in range(SEED, SEED + WORLDS):
        root = tmp_path / "world"
        world = make(root, random.Random(seed))
        refusal = decide(world, monkeypatch)
        if world.may_be_destroyed:
            outcomes["rightly approved" if refusal is None else "refused although free"] += 1
            assert refusal is None or world.tree.dev, f"world {seed} is free but was refused: {refusal}"
        else:
            outcomes["rightly refused"] += 1
            assert refusal is not None, f"world {seed} is in use or has another drive, but was approved: {world}"
        shutil.rmtree(root)
    print(f"{WORLDS} worlds from seed {SEED}: {dict(outcomes)}")
    assert min(outcomes["rightly approved"], outcomes["rightly refused"]) > WORLDS // 10
