"""Debian packages for the guest only: downloaded and unpacked, never installed on the running system.

mdadm, lvm2 and bcache-tools contain udev rules and services. On this host, these would assemble arrays and activate
volumes of drives that do not belong to any test.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from drivelab.core import programs
from emulation.host import UnavailableError, apt, cache

PROGRAMS = ("btrfs", "cryptsetup", "lvm", "make-bcache", "mdadm", "mkfs.btrfs", "mkfs.f2fs", "mkfs.xfs")


def find() -> Path:
    """Return the folder with the unpacked packages; download them if the cache lacks them.

    Raises UnavailableError if apt cannot download them.
    """
    names = sorted({programs.packages()[name] for name in PROGRAMS})
    directory = cache() / f"packages-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:12]}"
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix="download-") as temporary:
            unpacked = Path(temporary) / "unpacked"
            for package in _download(names, Path(temporary)):
                subprocess.run(["dpkg-deb", "--extract", package, unpacked], check=True)
            missing = [name for name in PROGRAMS if program(unpacked, name) is None]
            if missing:
                raise UnavailableError(f"the packages {', '.join(names)} do not contain {', '.join(missing)}")
            unpacked.rename(directory)
    return directory


def program(directory: Path, name: str) -> Path | None:
    """Return the path of a program among the unpacked packages, or None."""
    paths = (directory / folder / name for folder in ("usr/sbin", "usr/bin", "sbin", "bin"))
    return next((path for path in paths if path.is_file()), None)


def _download(names: list[str], directory: Path) -> list[Path]:
    """Download packages and the dependencies that this host lacks."""
    (directory / "partial").mkdir()
    options = ["--download-only", "--reinstall", "-y", "--no-install-recommends", "-o",
               f"Dir::Cache::archives={directory}"]  # fmt: skip
    try:
        apt("install", *options, *names)
    except UnavailableError:  # the package lists are missing or old
        apt("update", may_fail=True)
        apt("install", *options, *names)
    return sorted(directory.glob("*.deb"))
