"""Install what this host needs for emulated machines."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.core.programs import packages
from drivelab.virtual import manage

QEMU = "qemu-system-x86_64"
HOST_PROGRAMS = (QEMU, "setpriv", "dpkg-deb", "ldd")
GUEST_PROGRAMS = (
    "busybox", "dash", "fio", "blktrace", "blkparse", "nvme", "hdparm", "blkid", "blkdiscard", "wipefs", "lsblk",
    "setpriv", "mount", "umount", "losetup", "mke2fs", "mkfs.ext4", "sfdisk", "dmsetup", "udevadm", "partx",
    "sg_format", "sg_inq", "sg_logs", "sg_opcodes", "sg_raw", "sg_readcap", "sg_requests", "sg_sanitize", "sg_turs",
    "sg_vpd",
)  # fmt: skip


COULD_NOT_RUN = 77
"""Exit status of a test run that this host cannot do at all (Automake's convention)."""


class UnavailableError(Exception):
    """Emulated machines cannot run here; the message says why."""


def end_by_signals() -> None:
    """Treat SIGTERM and SIGHUP as an interrupt, so that fixtures remove what they started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def cache() -> Path:
    """Return the folder that keeps the unpacked kernel between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drivelab/emulated"


def which(program: str) -> Path | None:
    """Return the path of a program, also in sbin folders that are not in the user's PATH."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin")
    return Path(path) if path else None


def prepare() -> None:
    """Install what is missing; raises UnavailableError if that fails or virtual drives cannot run."""
    if platform.machine() != "x86_64":
        raise UnavailableError(f"the emulated machines run this host's programs, which must be for x86-64, not "
                               f"{platform.machine()}")  # fmt: skip
    missing = missing_packages()
    if missing:
        install(missing)
    if missing := missing_packages():
        raise UnavailableError(f"the packages {', '.join(missing)} are still missing after apt-get install")
    if (reason := manage.possible()) is not None:
        raise UnavailableError(reason)


def missing_packages() -> list[str]:
    missing = (program for program in (*HOST_PROGRAMS, *GUEST_PROGRAMS) if which(program) is None)
    return sorted({packages()[program] for program in missing})


def install(packages: Iterable[str]) -> None:
    """Install Debian packages; raises UnavailableError with their names on failure."""
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
    """Let one process install at a time, because updating the package lists breaks a running installation."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "install.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def apt(*arguments: str, cwd: Path | None = None, may_fail: bool = False) -> None:
    """Run apt-get; raises UnavailableError with its last line of output if it fails."""
    done = subprocess.run(
        ["apt-get", "-q", *arguments], cwd=cwd, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0 and not may_fail:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise UnavailableError(f"apt-get {' '.join(arguments)} failed: {last}")
