"""Debian's kernel for the emulated machines: downloaded and unpacked, never installed on the running system.

It is the full kernel, most of which is modules, because the cloud flavour of Debian 12 has no AHCI.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from emulation.host import UnavailableError, apt, cache

META_PACKAGE = "linux-image-amd64"
WANTED = ("crc32c_generic", "nvme", "ahci", "sd_mod", "sg", "ext4", "dm_mod")
"""Modules to load, in this order; ext4's helpers request crc32c by name, not as a dependency."""
STACKING = (
    "loop", "virtio_pci", "virtio_scsi", "nvmet", "nvmet_tcp", "nvme_tcp", "target_core_file", "raid0", "raid1",
    "raid10", "raid456", "dm_multipath", "dm_round_robin", "dm_thin_pool", "aesni_intel", "xts", "dm_crypt", "bcache",
    "btrfs", "xfs", "crc32_generic", "f2fs",
)  # fmt: skip
"""Modules for devices and file systems stacked on a drive; a test loads them with /guest/modules.sh. F2FS requests
crc32 by name, not as a dependency."""
_UNPACK = re.compile(
    r"boot/vmlinuz-|lib/modules/[^/]+/kernel/(arch/x86/crypto|block|crypto|lib|fs/(ext4|jbd2|mbcache|btrfs|xfs|f2fs|configfs)|"
    r"drivers/(ata|block|md|nvme|scsi|target|hwmon|virtio))"
)


@dataclass(frozen=True)
class Kernel:
    """A kernel image and its unpacked modules."""

    image: Path
    modules: Path

    def load_order(self, wanted: tuple[str, ...] = WANTED) -> list[tuple[str, bytes]]:
        """Return name and content of modules, dependencies first, without built-in ones."""
        files = {_module_name(path): path for path in self.modules.rglob("*.ko*")}
        loaded: dict[str, bytes] = {}

        def load(name: str) -> None:
            if name in loaded or name not in files:
                return
            content = _content(files[name])
            for needed in _dependencies(content):
                load(needed)
            loaded[name] = content

        for name in wanted:
            load(name)
        return list(loaded.items())


def find() -> Kernel:
    """Return the kernel from the cache, downloading it if necessary; raises UnavailableError."""
    directory = cache() / f"kernel-{hashlib.sha256(_UNPACK.pattern.encode()).hexdigest()[:12]}"
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix="download-") as temporary:
            _unpack(_download(Path(temporary)), Path(temporary) / "kernel")
            (Path(temporary) / "kernel").rename(directory)
    images = sorted(directory.glob("boot/vmlinuz-*"))
    if not images:
        raise UnavailableError(f"{directory} contains no kernel; remove this folder and try again")
    return Kernel(images[-1], directory)


def _download(directory: Path) -> Path:
    """Download the newest kernel package of the distribution."""
    package = _newest_package()
    if package is None:
        apt("update", may_fail=True)
        package = _newest_package()
    if package is None:
        raise UnavailableError(f"apt does not find the package {META_PACKAGE}, whose kernel the emulated machines boot")
    shutil.chown(directory, "_apt")  # apt downloads as this user
    apt("download", package, cwd=directory)
    return next(directory.glob("*.deb"))


def _newest_package() -> str | None:
    done = subprocess.run(["apt-cache", "depends", META_PACKAGE], capture_output=True, text=True, check=False)
    match = re.search(r"Depends: (linux-image-\S+)", done.stdout)
    return match[1] if match else None


def _unpack(package: Path, target: Path) -> None:
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        for member in archive:
            member.name = re.sub(r"^(\./)?(usr/)?", "", member.name)
            if member.isfile() and _UNPACK.match(member.name):
                archive.extract(member, target, filter="data")
    if process.returncode != 0:
        raise UnavailableError(f"cannot unpack {package.name}: dpkg-deb ended with status {process.returncode}")


def _module_name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _content(path: Path) -> bytes:
    """Return an uncompressed module; Debian 13 compresses them with xz."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def _dependencies(module: bytes) -> list[str]:
    """Return the names in the module's section .modinfo, because an unpacked package has no modules.dep."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name.replace("-", "_") for name in match[1].decode().split(",") if name] if match else []
