"""Emulated machines: their drives, their start and their guaranteed end."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from emulation import host, image, kernel, packages
from emulation.machine import Machine

from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

host.end_by_signals()


@dataclass(frozen=True)
class Ground:
    """Files that all machines of a session share."""

    directory: Path
    kernel: kernel.Kernel
    image: Path


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Programs, kernel and image; ends the session with COULD_NOT_RUN if they are not available."""
    try:
        host.prepare()
        cached = kernel.find()
        unpacked = packages.find()
    except host.UnavailableError as reason:
        pytest.exit(f"cannot test the emulated drives here: {reason}", host.COULD_NOT_RUN)
    directory = tmp_path_factory.mktemp("machines")
    archive = directory / "image.cpio"
    with ExitStack() as stack:
        # A fixed place for one session at a time, so that the next session removes the leftovers of a killed one.
        fcntl.flock(stack.enter_context((host.cache() / "lock").open("w")), fcntl.LOCK_EX)
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("DRIVELAB_RUN_DIR", str(host.cache() / "run"))
        manage.stop(force=True)
        stack.callback(manage.stop, force=True)
        stack.callback(archive.unlink, missing_ok=True)  # pytest keeps the other files, the kernel logs
        image.build(cached, unpacked, archive)
        yield Ground(directory, cached, archive)


@pytest.fixture(scope="session")
def make_file(ground: Ground) -> Callable[[str, int], Path]:
    """Return a function that makes an empty file of some MiB as the backing of a drive."""

    def make(name: str, size_mib: int) -> Path:
        path = ground.directory / f"{name}.img"
        with path.open("xb") as file:
            file.truncate(size_mib << 20)
        return path

    return make


@pytest.fixture(scope="session")
def flash(ground: Ground) -> manage.VirtualDrive:
    """The virtual drive behind the NVMe drive that is purged; its write cliff comes after seconds.

    One die programs a page in 800 us: 1,250 IOPS while there is empty flash, a fraction of it later. Both are far below
    the limit of the emulation.
    """
    return manage.start("flash", DriveModel.from_mapping("flash", {
        "serial": "BACKING-1", "capacity": "4MiB", "over_provisioning": "12%", "pages_per_block": 8, "dies": 1,
        "program_us": 800, "copy_us": 800, "slc_cache": "0B", "write_buffer": "64KiB",
    }))  # fmt: skip


@pytest.fixture(scope="session")
def bench(ground: Ground, make_file: Callable[[str, int], Path], flash: manage.VirtualDrive) -> Iterator[Machine]:
    """A healthy machine with NVMe drives (over a virtual drive, 4Kn, without serial, two paths) and SATA 512e."""
    yield from _machine(
        ground,
        "bench",
        [
            *_nvme("flash", Path(flash.mount_point), "EMU-FLASH", options="cache=none,discard=unmap"),
            *_nvme("native", make_file("native", 64), "EMU-NATIVE-4K", block_bytes=4096),
            *_nvme("nameless", make_file("nameless", 16), ""),
            "-device", "ich9-ahci,id=ahci",
            "-drive", f"file={make_file('sata', 64)},if=none,id=sata,format=raw,discard=unmap",
            "-device", "ide-hd,drive=sata,bus=ahci.0,serial=EMU-SATA,model=EMULATED SATA,ver=FW01,"
            "rotation_rate=1,physical_block_size=4096",
            *_subsystem(make_file("native-1", 32), make_file("native-2", 32)),
        ],
        ["nvme.poll_queues=1"],
    )  # fmt: skip


def _nvme(name: str, file: Path, serial: str, *, block_bytes: int = 512, options: str = "discard=unmap") -> list[str]:
    """Return QEMU's arguments for an NVMe drive over a file: 512n or 4Kn, but not 512e."""
    return [
        "-drive", f"file={file},if=none,id={name},format=raw,{options}",
        "-device", f"nvme,drive={name},id=nvme-{name},serial={serial},"
        f"logical_block_size={block_bytes},physical_block_size={block_bytes}",
    ]  # fmt: skip


def _subsystem(*files: Path) -> list[str]:
    """Return QEMU's arguments for an NVM subsystem with two controllers that share one namespace per file."""
    arguments = ["-device", "nvme-subsys,id=subsystem,nqn=shared"]
    for path in ("path0", "path1"):
        arguments += ["-device", f"nvme,id={path},serial=EMU-SHARED,subsys=subsystem"]
    for number, file in enumerate(files, start=1):
        arguments += [
            "-drive", f"file={file},if=none,id=shared{number},format=raw,discard=unmap",
            "-device", f"nvme-ns,drive=shared{number},nsid={number},shared=on,bus=path0",
        ]  # fmt: skip
    return arguments


def _machine(ground: Ground, name: str, devices: list[str], parameters: list[str] | None = None) -> Iterator[Machine]:
    machine = Machine(ground.directory / name, ground.kernel, ground.image, devices, parameters or [])
    try:
        machine.wait_until_ready()
        yield machine
    finally:
        machine.kill()
        manage.stop(force=True)  # hanging requests keep QEMU from ending
        machine.reap()


@pytest.fixture(scope="session")
def hanging(ground: Ground) -> manage.VirtualDrive:
    """The virtual drive for errors and hangs."""
    return manage.start("hanging", DriveModel.from_mapping("hanging", {
        "serial": "BACKING-2", "capacity": "8MiB", "over_provisioning": "28%", "pages_per_block": 16, "enabled": False,
    }))  # fmt: skip


@pytest.fixture(scope="session")
def faulty(ground: Ground, make_file: Callable[[str, int], Path], hanging: manage.VirtualDrive) -> Iterator[Machine]:
    """A machine with failing drives: one hangs, one has a bad sector, one is removed and replaced.

    The kernel gives up after seconds and without retries, so that tests can wait for its reaction.
    """
    medium, bad_sector = make_file("medium", 16), (1 << 20) // 512 + 16
    yield from _machine(
        ground,
        "faulty",
        [
            *_nvme("hanging", Path(hanging.mount_point), "EMU-HANG", options="cache=none,discard=unmap"),
            "-blockdev", "driver=raw,node-name=medium,file.driver=blkdebug,file.image.driver=file,"
            f"file.image.filename={medium},file.inject-error.0.event=none,file.inject-error.0.iotype=read,"
            f"file.inject-error.0.errno=5,file.inject-error.0.sector={bad_sector},file.inject-error.0.once=off,"
            "file.inject-error.0.immediately=off",
            "-device", "nvme,drive=medium,id=nvme-medium,serial=EMU-MEDIUM",
            *_nvme("removed", make_file("removed", 64), "EMU-REMOVED"),
            "-drive", f"file={make_file('swapped', 16)},if=none,id=swapped,format=raw",
        ],
        ["nvme_core.io_timeout=10", "nvme_core.max_retries=0"],
    )  # fmt: skip


@pytest.fixture(scope="session")
def stacked(ground: Ground, make_file: Callable[[str, int], Path]) -> Iterator[Machine]:
    """A machine with modules for everything stacked on drives, and two visible paths to a namespace and a disk."""
    disk = make_file("disk", 64)
    paths = (f"scsi-hd,bus=scsi.0,scsi-id={number},drive=disk,share-rw=on" for number in (0, 1))
    for machine in _machine(
        ground,
        "stacked",
        [
            *(option for name in "abcd" for option in _nvme(name, make_file(name, 128), f"EMU-{name.upper()}")),
            *_nvme("pulled", make_file("pulled", 32), "EMU-PULLED"),
            *_nvme("formatted", make_file("formatted", 320), "EMU-FORMATTED"),
            "-drive",
            f"file={make_file('spare', 32)},if=none,id=spare,format=raw,discard=unmap",
            "-drive",
            f"file={make_file('cloned', 32)},if=none,id=cloned,format=raw",
            "-drive",
            f"file={make_file('clone', 48)},if=none,id=clone,format=raw",
            *_subsystem(make_file("shared-1", 128)),
            "-device",
            "virtio-scsi-pci,id=scsi",
            "-blockdev",
            f"driver=raw,node-name=disk,file.driver=file,file.filename={disk}",
            *(option for path in paths for option in ("-device", f"{path},serial=EMU-SCSI,wwn=0x5000c50012345678")),
        ],
        ["nvme_core.multipath=N"],
    ):
        machine.run(
            "/guest/modules.sh /modules/stacking && udevadm settle && mount -t configfs configfs /sys/kernel/config"
        )
        yield machine
