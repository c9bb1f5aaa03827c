"""Uses of a block device as context managers: in use inside the block, released after it.

Signatures stay on the device. Device mapper programs do not wait for udev, because this guest lacks their rules.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

MOUNT_POINT = "/mnt"
_CONFIGFS = Path("/sys/kernel/config")
os.environ["DM_DISABLE_UDEV"] = "1"


def run(*command: str, text: str | None = None) -> str:
    """Run a program and return its output; if it fails, the exception has its errors."""
    done = subprocess.run(command, input=text, text=True, check=False, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def settle() -> None:
    """Wait until udev has reread all devices, which it does when a writer closes them."""
    subprocess.run(["sync"], check=True)
    run("udevadm", "settle")


def observed(names: Iterable[str], observe: Callable[[str], object], clear: Callable[[str], object]) -> None:
    """Print as JSON what `observe` returns for each name; `clear` what it leaves after an exception."""
    results: dict[str, object] = {}
    for name in names:
        try:
            results[name] = observe(name)
        except Exception:  # continue with the others
            results[name] = {"trouble": traceback.format_exc()}
            clear(name)
    print(json.dumps(results))


def wait_until_gone(path: str) -> None:
    while Path(path).exists():
        time.sleep(0.05)


def reread(drive: str) -> None:
    """Remove the partitions of a wiped drive; udev opens a partition for a moment after each change."""
    for _ in range(20):
        run("udevadm", "settle")
        if subprocess.run(["blockdev", "--rereadpt", drive], check=False, capture_output=True).returncode == 0:
            return
    raise RuntimeError(f"the partitions of {drive} stay in use")


def make_ext4(node: str, *options: str) -> None:
    """Make a complete file system; otherwise the kernel would write the rest of its tables after the mount."""
    run("mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,nodiscard", *options, node)


@contextmanager
def mounted(node: str, *options: str) -> Iterator[None]:
    make_ext4(node, *options)
    run("mount", node, MOUNT_POINT)
    try:
        yield
    finally:
        run("umount", MOUNT_POINT)


@contextmanager
def mounted_elsewhere(node: str) -> Iterator[None]:
    """Mounted in another mount namespace, like the volume of a container."""
    make_ext4(node)
    with _process("unshare", "-m", "sh", "-c", f"mount -t ext4 {node} {MOUNT_POINT} && echo ready && exec sleep 9999"):
        yield


@contextmanager
def unmounted_lazily(node: str) -> Iterator[None]:
    """Unmounted with `umount -l`, while a process still has a file open in it."""
    make_ext4(node)
    run("mount", node, MOUNT_POINT)
    with _process("sh", "-c", f"exec 3>{MOUNT_POINT}/file; echo ready; exec sleep 9999"):
        run("umount", "-l", MOUNT_POINT)
        yield


@contextmanager
def swapped_on(node: str) -> Iterator[None]:
    run("mkswap", node)
    run("swapon", node)
    try:
        yield
    finally:
        run("swapoff", node)


@contextmanager
def mapped(node: str, target: str = "linear {node} 0") -> Iterator[None]:
    run("dmsetup", "create", "held", "--noudevsync", "--table", f"0 2048 {target.format(node=node)}")
    try:
        yield
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "held")


@contextmanager
def mapping_loaded(node: str) -> Iterator[None]:
    """A mapping whose table is loaded but not yet active."""
    run("dmsetup", "create", "held", "--noudevsync", "--notable")
    run("dmsetup", "load", "held", "--table", f"0 2048 linear {node} 0")
    try:
        yield
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "held")


@contextmanager
def volume(node: str) -> Iterator[str]:
    """An active logical volume; afterwards its volume group is inactive."""
    only = ("--quiet", "--devices", node)  # otherwise LVM sees another path to the drive as a duplicate
    run("lvm", "pvcreate", *only, "-ff", "-y", node)
    run("lvm", "vgcreate", *only, "group", node)
    run("lvm", "lvcreate", *only, "-y", "-W", "n", "-Z", "n", "-n", "data", "-L", "32M", "group")
    try:
        yield "/dev/group/data"
    finally:
        run("lvm", "vgchange", *only, "-a", "n", "group")


@contextmanager
def volume_mounted(node: str) -> Iterator[None]:
    with volume(node) as path, mounted(path):
        yield


@contextmanager
def partitioned(node: str) -> Iterator[str]:
    """Two partitions; yields the second. Afterwards there are none."""
    run("sfdisk", "--quiet", "--wipe", "always", node, text="label: gpt\nsize=8MiB\nsize=40MiB\n")
    run("udevadm", "settle")
    try:
        name = str(Path(node).resolve())
        yield f"{name}p2" if name[-1].isdigit() else f"{name}2"
    finally:
        run("wipefs", "--all", "--force", "--quiet", node)
        reread(node)


@contextmanager
def partition_mounted(node: str) -> Iterator[None]:
    with partitioned(node) as partition, mounted(partition):
        yield


@contextmanager
def partition_with_volume(node: str) -> Iterator[None]:
    with partitioned(node) as partition, volume_mounted(partition):
        yield


@contextmanager
def partition_with_inactive_group(node: str) -> Iterator[None]:
    with partitioned(node) as partition:
        with volume(partition):
            pass
        yield


@contextmanager
def mirrored(node: str, other: str) -> Iterator[None]:
    """Both are members of a RAID 1; afterwards it is stopped."""
    run("mdadm", "--create", "/dev/md0", "--run", "--quiet", "--level=1", "--raid-devices=2", "--metadata=1.2",
        "--assume-clean", "--bitmap=none", node, other)  # fmt: skip
    try:
        yield
    finally:
        run("mdadm", "--stop", "--quiet", "/dev/md0")


@contextmanager
def encrypted(node: str) -> Iterator[None]:
    Path("/run/key").write_text("an unimportant key")
    run("cryptsetup", "luksFormat", "--batch-mode", "--type", "luks1", "--pbkdf-force-iterations", "1000", node,
        "/run/key")  # fmt: skip
    run("cryptsetup", "open", "--key-file", "/run/key", node, "secret")
    try:
        yield
    finally:
        run("cryptsetup", "close", "secret")


@contextmanager
def cached(backing: str, cache: str) -> Iterator[None]:
    """A bcache over both; afterwards it is stopped."""
    run("make-bcache", "--bucket", "64k", "-B", backing, "-C", cache)
    for node in (cache, backing):
        Path("/sys/fs/bcache/register").write_text(node)
    try:
        while not Path("/sys/block/bcache0/bcache/cache").exists():
            time.sleep(0.05)
        yield
    finally:
        Path("/sys/block/bcache0/bcache/stop").write_text("1")
        wait_until_gone("/sys/block/bcache0")
        _stop_cache(cache)


@contextmanager
def cache_registered(node: str) -> Iterator[None]:
    """A cache of bcache without a backing device."""
    run("make-bcache", "--bucket", "64k", "-C", node)
    Path("/sys/fs/bcache/register").write_text(node)
    try:
        yield
    finally:
        _stop_cache(node)


def _stop_cache(node: str) -> None:
    link = Path("/sys/class/block") / Path(node).name / "bcache"
    (link / "set/stop").write_text("1")
    wait_until_gone(str(link))


@contextmanager
def btrfs_mounted(node: str, other: str) -> Iterator[None]:
    """A btrfs of both, mounted under the name of the other."""
    run("mkfs.btrfs", "--force", "--quiet", "--data", "raid1", "--metadata", "raid1", node, other)
    run("btrfs", "device", "scan", node, other)
    run("mount", "-t", "btrfs", other, MOUNT_POINT)
    try:
        yield
    finally:
        run("umount", MOUNT_POINT)
        run("btrfs", "device", "scan", "--forget")


@contextmanager
def journal_of(node: str, other: str) -> Iterator[None]:
    """The journal of a mounted file system on the other drive."""
    run("mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", node)
    with mounted(other, "-b", "4096", "-J", f"device={node}"):
        yield


@contextmanager
def hibernated(node: str) -> Iterator[None]:
    """Swap space with the image of a hibernated host (kernel/power/swap.c: the signature is S1SUSPEND)."""
    run("mkswap", node)
    with Path(node).open("r+b") as file:
        file.seek(4096 - 10)
        file.write(b"S1SUSPEND\0")
    yield


@contextmanager
def looped(node: str, file: str | None = None) -> Iterator[None]:
    run("losetup", "/dev/loop0", file or node)
    try:
        yield
    finally:
        run("losetup", "-d", "/dev/loop0")
        while Path("/sys/block/loop0/loop/backing_file").exists():
            time.sleep(0.05)


@contextmanager
def second_node(node: str) -> Iterator[str]:
    """Another node of the same device outside /dev, as in a container."""
    Path("/run/private").unlink(missing_ok=True)
    os.mknod("/run/private", Path(node).stat().st_mode, Path(node).stat().st_rdev)
    yield "/run/private"
    Path("/run/private").unlink(missing_ok=True)


@contextmanager
def looped_by_deleted_node(node: str) -> Iterator[None]:
    with second_node(node) as private, looped(node, private):
        Path(private).unlink()
        yield


@contextmanager
def exported(node: str) -> Iterator[Path]:
    """A namespace of an NVMe target, which opens the device without a process or O_EXCL; yields its subsystem."""
    subsystem = _CONFIGFS / "nvmet/subsystems/nqn.test"
    namespace = subsystem / "namespaces/1"
    subsystem.mkdir()
    namespace.mkdir()
    (namespace / "device_path").write_text(node)
    (namespace / "enable").write_text("1")
    try:
        yield subsystem
    finally:
        namespace.rmdir()
        subsystem.rmdir()


@contextmanager
def exported_by_lio(node: str) -> Iterator[None]:
    """A backstore of the LIO target, which opens the device without a process or O_EXCL, and without udev_path."""
    backstore = _CONFIGFS / "target/core/fileio_0/disk"
    backstore.mkdir(parents=True)
    (backstore / "control").write_text(f"fd_dev_name={node}")
    (backstore / "enable").write_text("1")
    try:
        yield
    finally:
        backstore.rmdir()
        backstore.parent.rmdir()


@contextmanager
def configfs_hidden() -> Iterator[None]:
    """configfs is not mounted, as in a container, while modules have their settings in it."""
    run("umount", str(_CONFIGFS))
    try:
        yield
    finally:
        run("mount", "-t", "configfs", "configfs", str(_CONFIGFS))


@contextmanager
def exported_unseen(node: str) -> Iterator[None]:
    with exported_by_lio(node), configfs_hidden():
        yield


@contextmanager
def exported_to_itself(node: str) -> Iterator[str]:
    """A namespace that this host exports, and reaches over TCP; yields its device."""
    with exported(node) as subsystem:
        (subsystem / "attr_allow_any_host").write_text("1")
        port = _CONFIGFS / "nvmet/ports/1"
        port.mkdir()
        run("busybox", "ifconfig", "lo", "127.0.0.1", "up")
        for name, value in (("trtype", "tcp"), ("adrfam", "ipv4"), ("traddr", "127.0.0.1"), ("trsvcid", "4420")):
            (port / f"addr_{name}").write_text(value)
        link = port / "subsystems/nqn.test"
        link.symlink_to(subsystem)
        uuid = (subsystem / "namespaces/1/device_uuid").read_text().strip()
        try:
            run("nvme", "connect", "--transport=tcp", "--traddr=127.0.0.1", "--trsvcid=4420", "--nqn=nqn.test",
                "--hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555")  # fmt: skip
            yield _namespace_with(uuid)
        finally:
            run("nvme", "disconnect", "--nqn=nqn.test")
            link.unlink()
            port.rmdir()


def _namespace_with(uuid: str) -> str:
    """Wait for the namespace with a UUID; return its node."""
    while True:
        for file in Path("/sys/block").glob("nvme*/uuid"):
            if file.read_text().strip() == uuid:
                return f"/dev/{file.parent.name}"
        time.sleep(0.05)


@contextmanager
def exported_by_second_node(node: str) -> Iterator[None]:
    with second_node(node) as private, exported(private):
        yield


@contextmanager
def opened(node: str, flags: int) -> Iterator[None]:
    descriptor = os.open(node, flags)
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def written_by_process(node: str) -> Iterator[None]:
    with _process("sh", "-c", f"exec 3<>{node}; echo ready; exec sleep 9999"):
        yield


@contextmanager
def written_by_deleted_node(node: str) -> Iterator[None]:
    with second_node(node) as private, written_by_process(private):
        Path(private).unlink()
        yield


@contextmanager
def mapped_by_process(node: str) -> Iterator[None]:
    """A process with a shared writable mapping of the device; its descriptor is closed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        descriptor = os.open(node, os.O_RDWR)
        memory = mmap.mmap(descriptor, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        os.write(writer, b"ready")
        os.closerange(3, 256)  # closes also the copy of the descriptor that Python's mapping keeps
        while True:
            time.sleep(9999)
        memory.close()
    os.close(writer)
    os.read(reader, 5)
    os.read(reader, 1)  # end of file: the child has closed its descriptors
    os.close(reader)
    try:
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


@contextmanager
def _process(*command: str) -> Iterator[None]:
    """Run a process that reports when it is ready; kill it at the end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{' '.join(command)} failed")
            yield
        finally:
            process.kill()
