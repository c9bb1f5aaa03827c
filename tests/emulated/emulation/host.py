"""What this host needs for emulated machines, installed where it is missing."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.virtual import manage

QEMU = "qemu-system-x86_64"
HOST_PROGRAMS = {QEMU: "qemu-system-x86", "setpriv": "util-linux", "dpkg-deb": "dpkg", "ldd": "libc-bin"}
GUEST_PROGRAMS = {
    "busybox": "busybox-static",
    "dash": "dash",
    "fio": "fio",
    "blktrace": "blktrace",
    "blkparse": "blktrace",
    "nvme": "nvme-cli",
    "hdparm": "hdparm",
    "blkid": "util-linux",
    "blkdiscard": "util-linux",
    "wipefs": "util-linux",
    "lsblk": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "umount": "mount",
    "losetup": "mount",
    "mke2fs": "e2fsprogs",
    "sfdisk": "fdisk",
    "dmsetup": "dmsetup",
    "udevadm": "udev",
    "partx": "util-linux",
    **{
        f"sg_{name}": "sg3-utils"
        for name in (
            "format",
            "inq",
            "logs",
            "opcodes",
            "raw",
            "readcap",
            "requests",
            "sanitize",
            "turs",
            "vpd",
        )
    },
}
"""Program and its Debian package."""


class UnavailableError(Exception):
    """Emulated machines cannot run here; the text says why."""


def cache() -> Path:
    """Where the unpacked kernel stays from one run to the next."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drivelab/emulated"


def which(program: str) -> Path | None:
    """Path of a program, also of one in sbin for a user without it in PATH."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin")
    return Path(found) if found else None


def prepare() -> None:
    """Install what is missing; raises UnavailableError where that or a virtual drive is impossible."""
    if platform.machine() != "x86_64":
        raise UnavailableError(f"the emulated machines run this host's programs, and its processor is no x86-64 "
                               f"but {platform.machine()}")  # fmt: skip
    missing = missing_packages()
    if missing:
        install(missing)
    if missing := missing_packages():
        raise UnavailableError(f"the packages {', '.join(missing)} are missing, also after apt-get install")
    if (reason := manage.possible()) is not None:
        raise UnavailableError(reason)


def missing_packages() -> list[str]:
    programs = HOST_PROGRAMS | GUEST_PROGRAMS
    return sorted({package for program, package in programs.items() if which(program) is None})


def install(packages: Iterable[str]) -> None:
    """Install Debian packages; raises UnavailableError naming them where that cannot be done."""
    names = list(packages)
    if os.geteuid() != 0 or which("apt-get") is None:
        raise UnavailableError(
            f"these packages are missing: {' '.join(names)}; run "
            f"'apt-get install --no-install-recommends {' '.join(names)}' as root"
        )
    with _one_at_a_time():
        apt("update", may_fail=True)
        apt("install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600", *names)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Tiers run beside each other, and an update of the lists takes them from an installation under way."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "install.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def apt(*arguments: str, cwd: Path | None = None, may_fail: bool = False) -> None:
    """Run apt-get; raises UnavailableError with its last line where it fails."""
    done = subprocess.run(
        ["apt-get", "-q", *arguments], cwd=cwd, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0 and not may_fail:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise UnavailableError(f"apt-get {' '.join(arguments)} failed: {last}")
