"""Debian's kernel for the emulated machines: downloaded and unpacked, never installed into the running system.

The cloud flavour of Debian 12 has no AHCI, so it is the full one, most of which is modules.
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
"""Modules to load, in this order; crc32c is asked for by name when ext4's helpers begin, not by a dependency."""
STACKING = (
    "loop", "virtio_pci", "virtio_scsi", "nvmet", "md_mod", "raid1", "dm_multipath", "dm_round_robin", "aesni_intel",
    "xts", "dm_crypt", "bcache", "btrfs",
)  # fmt: skip
"""Modules of what can stand on a drive; a test loads them with /guest/modules.sh."""
_UNPACK = re.compile(
    r"boot/vmlinuz-|lib/modules/[^/]+/kernel/(arch/x86/crypto|block|crypto|lib|fs/(ext4|jbd2|mbcache|btrfs|configfs)|"
    r"drivers/(ata|block|md|nvme|scsi|hwmon|virtio))"
)


@dataclass(frozen=True)
class Kernel:
    """A kernel image and its unpacked modules."""

    image: Path
    modules: Path

    def load_order(self, wanted: tuple[str, ...] = WANTED) -> list[tuple[str, bytes]]:
        """Name and content of modules, those that others depend on first; what is built in is left out."""
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
    """The kernel in the cache, put there first where there is none; raises UnavailableError."""
    directory = cache() / f"kernel-{hashlib.sha256(_UNPACK.pattern.encode()).hexdigest()[:12]}"
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix="download-") as temporary:
            _unpack(_download(Path(temporary)), Path(temporary) / "kernel")
            (Path(temporary) / "kernel").rename(directory)
    images = sorted(directory.glob("boot/vmlinuz-*"))
    if not images:
        raise UnavailableError(f"{directory} holds no kernel; remove it and try again")
    return Kernel(images[-1], directory)


def _download(directory: Path) -> Path:
    """The newest kernel package of the distribution."""
    package = _newest_package()
    if package is None:
        apt("update", may_fail=True)
        package = _newest_package()
    if package is None:
        raise UnavailableError(f"apt knows no package {META_PACKAGE}, whose kernel the emulated machines boot")
    shutil.chown(directory, "_apt")  # apt downloads as that user
    apt("download", package, cwd=directory)
    return next(directory.glob("*.deb"))


def _newest_package() -> str | None:
    done = subprocess.run(["apt-cache", "depends", META_PACKAGE], capture_output=True, text=True, check=False)
    found = re.search(r"Depends: (linux-image-\S+)", done.stdout)
    return found[1] if found else None


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
        raise UnavailableError(f"{package.name} cannot be unpacked: dpkg-deb ended with status {process.returncode}")


def _module_name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _content(path: Path) -> bytes:
    """A module, uncompressed: Debian 13 packs them with xz."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def _dependencies(module: bytes) -> list[str]:
    """Names in the module's own section .modinfo: an unpacked package has no modules.dep."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name.replace("-", "_") for name in found[1].decode().split(",") if name] if found else []
