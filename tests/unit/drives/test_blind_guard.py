"""A guard that cannot see everything refuses, on fake /sys and /proc trees: hidden processes and unreadable exports."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from device_trees import Tree

from drivelab.core.sight import Unseen, advised, blindness
from drivelab.drives import target
from drivelab.drives.node import File
from drivelab.drives.openers import is_written

SYS_PTRACE, SYS_ADMIN = 1 << 19, 1 << 21
ALL = 0x1FFFFFFFFFF


def namespace(tree: Tree, name: str) -> None:
    tree.files[f"{tree.proc}/self/ns/{name}"] = File("", "", (4, 4026532178))


def hide(tree: Tree) -> None:
    """Hide the first process, as hidepid does if a security module protects it."""
    (tree.proc / "1").rmdir()


def deny(tree: Tree, pid: int) -> None:
    """Add a process whose open files this process may not look at."""
    link = tree.process(pid) / "fd/7"
    tree.denied.add(str(link))
    link.mkdir()  # so that readlink(2) fails too


BLINDNESS: dict[str, tuple[Callable[[Tree], object], tuple[str, ...]]] = {
    "a PID namespace": (lambda tree: namespace(tree, "pid"), ("PID namespace of its own", "--pid=host")),
    "/proc of another PID namespace": (
        lambda tree: tree.files.pop(f"{tree.proc}/self/ns/pid"), ("PID namespace of its own", "--pid=host")
    ),
    "a user namespace": (lambda tree: namespace(tree, "user"), ("user namespace of its own", "sudo podman")),
    "no right to see open files": (
        lambda tree: tree.capable(ALL & ~SYS_PTRACE), ("the capability SYS_PTRACE,", "--cap-add=SYS_PTRACE (")
    ),
    "no right to see mapped files": (
        lambda tree: tree.capable(ALL & ~SYS_ADMIN), ("the capability SYS_ADMIN,", "--cap-add=SYS_ADMIN (")
    ),
    "no rights": (lambda tree: tree.capable(0), ("SYS_PTRACE and SYS_ADMIN", "Run as root")),
    "hidepid": (hide, ("(mount option hidepid)", "mount -o remount,hidepid=0")),
}  # fmt: skip


@pytest.mark.parametrize("way", BLINDNESS)
def test_a_guard_that_does_not_see_every_process_refuses(tmp_path: Path, way: str) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    assert tree.holder("sdz") is None
    make_blind, words = BLINDNESS[way]
    make_blind(tree)
    reason = tree.holder("sdz")
    assert isinstance(reason, Unseen)
    assert "so a drive or file in use can look free" in reason
    assert all(word in reason for word in words)
    assert advised(reason) == reason
    assert target.file_holder((1, 2), tree.host) == reason


def test_a_writer_that_is_seen_is_named_first(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    tree.capable(0)
    tree.shown("module/nvmet/initstate", "live\n")
    tree.opened("sdz")
    assert advised(tree.holder("sdz") or "") == (
        "process 4711 (qemu-system-x86) has /dev/sdz open for writing. Release it first"
    )


def test_a_process_that_hides_its_files_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    deny(tree, 4711)
    reason = tree.holder("sdz")
    assert isinstance(reason, Unseen)
    assert "the open files of process 4711 (qemu-system-x86) cannot be read" in reason


def test_a_file_on_fuse_hides_no_process(tmp_path: Path) -> None:
    """FUSE refuses statx(2) to other users, also to root; the link shows that the file is another."""
    tree = Tree(tmp_path, {"sdz": 0, "sdy": 0})
    tree.opened("sdy", path="/run/user/1000/doc/x")
    tree.denied.add(str(tree.proc / "4711/fd/7"))
    assert tree.holder("sdz") is None


def test_the_protected_first_process_is_no_reason(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    deny(tree, 1)
    assert tree.holder("sdz") is None


@pytest.mark.parametrize(
    ("module", "folder"),
    [("nvmet", "nvmet"), ("target_core_mod", "target"), ("usb_f_mass_storage", "usb_gadget"),
     ("ocfs2_nodemanager", "cluster")],
)  # fmt: skip
def test_exports_in_a_configfs_that_is_not_mounted(tmp_path: Path, module: str, folder: str) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    (tree.sys / "kernel/config").mkdir(parents=True)
    (tree.sys / "module" / module).mkdir(parents=True)
    reason = tree.holder("sdz")
    assert isinstance(reason, Unseen)
    assert f"the module {module} is loaded and configfs is not mounted" in reason
    assert reason.endswith(f"Run: mount -t configfs none {tree.sys}/kernel/config")
    (tree.sys / "kernel/config" / folder).mkdir()
    assert tree.holder("sdz") is None


UNKNOWN: dict[str, Callable[[Tree], None]] = {
    "a path of another mount namespace": lambda tree: tree.export("private"),
    "a relative path": lambda tree: tree.shown("kernel/scst_tgt/devices/x/filename", "sdy\n"),
    "a backstore with a path that is gone": lambda tree: tree.backstore("TCM FILEIO ID: 0        File: /x  Size: 1  "),
    "a backstore of an unknown kind": lambda tree: tree.backstore("Config: x", "future_0"),
}


@pytest.mark.parametrize("way", UNKNOWN)
def test_an_export_that_cannot_be_assigned_may_be_any_drive(tmp_path: Path, way: str) -> None:
    tree = Tree(tmp_path, {"sdz": 0, "sdy": 0})
    UNKNOWN[way](tree)
    reason = tree.holder("sdz")
    assert isinstance(reason, Unseen)
    assert "cannot be found here, so it may be this drive. End that export" in reason


def test_an_export_that_cannot_be_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    file = tree.sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path"
    file.mkdir(parents=True)
    reason = tree.holder("sdz")
    assert isinstance(reason, Unseen)
    assert f"{file} cannot be read (Is a directory), so a drive or file in use can look free" in reason


def not_enabled(tree: Tree) -> None:
    """Add a namespace as `mkdir` makes it."""
    folder = "kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    tree.shown(f"{folder}/device_path", "(null)\n")
    (tree.sys / folder / "enable").write_text("0\n")


INACTIVE: dict[str, Callable[[Tree], None]] = {
    "a namespace that is not enabled": not_enabled,
    "an empty lun": lambda tree: tree.shown("kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file", "\n"),
    "a backstore that is not enabled": lambda tree: tree.backstore("TCM FILEIO ID: 0", status="DEACTIVATED"),
    "a backstore in memory": lambda tree: tree.backstore("TCM RamDisk ID: 0  RamDisk Makeup: rd_mcp", "rd_mcp_0"),
    "a backstore of a process": lambda tree: tree.backstore("Config: rbd/x Size: 1", "user_0"),
    "a guest that is starting": lambda tree: tree.shown("bus/xen-backend/devices/vbd-1-1/physical_device", "0:0\n"),
}


@pytest.mark.parametrize("way", INACTIVE)
def test_what_holds_no_device_is_no_reason(tmp_path: Path, way: str) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    INACTIVE[way](tree)
    assert tree.holder("sdz") is None


def test_the_kernel_says_whether_a_file_is_open_for_writing(tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(bytes(4096))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        answers = [is_written(descriptor)]
        with file.open("r+b"):
            answers.append(is_written(descriptor))
        with file.open("rb"):
            answers.append(is_written(descriptor))
        if None in answers:
            pytest.skip("the file system of this folder has no leases")
        assert answers == [False, True, False]
    finally:
        os.close(descriptor)


def test_this_process_is_judged_by_its_own_kernel_files() -> None:
    """The inodes of the host's own namespaces are constants of the kernel."""
    own = {name: Path(f"/proc/self/ns/{name}").stat().st_ino for name in ("pid", "user")}
    text = blindness() or ""
    assert (own["pid"] != 4026531836) == ("PID namespace" in text)
    if "PID namespace" not in text:
        assert (own["user"] != 4026531837) == ("user namespace" in text)
