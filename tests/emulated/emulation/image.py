"""Build the initial RAM file system of an emulated machine: this host's programs and the project's library."""

from __future__ import annotations

import os
import py_compile
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from drivelab.native import built_engine_path
from emulation import host, packages
from emulation.kernel import STACKING, WANTED, Kernel

ROOT = Path(__file__).resolve().parents[3]
GUEST = ROOT / "tests/emulated/guest"
PROJECT = "/project"
PACKAGES = ("yaml", "attr", "attrs", "jsonschema", "jsonschema_specifications", "referencing", "rpds",
            "typing_extensions")  # fmt: skip
"""Python packages that the stages of a measurement import."""
MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders in / that are links into /usr (file-hierarchy(7))."""
UDEV = (
    "/usr/lib/systemd/systemd-udevd",
    "/usr/lib/udev/ata_id",
    "/usr/lib/udev/scsi_id",
    "/usr/lib/udev/rules.d/50-udev-default.rules",
    "/usr/lib/udev/rules.d/60-block.rules",
    "/usr/lib/udev/rules.d/60-persistent-storage.rules",
)
"""Files that create /dev/disk/by-id and the udev database."""
_WITHOUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages",
            "dist-packages", "distutils", "pydoc_data"}  # fmt: skip
"""Parts of Python's standard library that are left out."""


class Image:
    """Files by path in the guest, written as an archive in the kernel's initramfs buffer format."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes | Path]] = {}
        for name in MERGED:
            self.link(f"/{name}", f"usr/{name}")
        for name in ("dev", "proc", "sys", "run", "tmp", "root", "etc", "mnt"):
            self._entries[f"/{name}"] = (stat.S_IFDIR | 0o755, b"")

    def file(self, path: str | Path, content: bytes | Path, mode: int = 0o644) -> None:
        """Add a file from bytes or from a host file; keep the file's time, which Python compares with its cache."""
        self._entry(str(path), stat.S_IFREG | mode, content)

    def link(self, path: str, target: str) -> None:
        self._entry(path, stat.S_IFLNK | 0o777, target.encode())

    def programs(self, *paths: Path, root: Path = Path("/")) -> None:
        """Add programs or libraries at their places below `root`, with the libraries that they need."""
        for path in {*paths, *libraries(paths, root)}:
            inside = Path("/") / path.relative_to(root if path.is_relative_to(root) else "/")
            self.file(inside, path.resolve(), 0o755)

    def tree(self, source: Path, target: str, pattern: str = "*") -> None:
        for path in sorted(source.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                self.file(f"{target}/{path.relative_to(source)}", path, path.stat().st_mode & 0o777)

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            for number, (name, (mode, content)) in enumerate(sorted(self._entries.items()), start=1):
                _write_entry(file, number, name, mode, content)
            _write_entry(file, 0, "/TRAILER!!!", 0, b"")

    def _entry(self, path: str, mode: int, content: bytes | Path) -> None:
        first = path.split("/")[1]
        path = f"/usr{path}" if first in MERGED and path != f"/{first}" else path
        for parent in Path(path).parents:
            self._entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))
        self._entries[path] = (mode, content)


def build(kernel: Kernel, unpacked: Path, path: Path) -> None:
    """Write the image with a kernel's modules and the `unpacked` packages; takes a few seconds."""
    image = Image()
    image.file("/init", GUEST / "init", 0o755)
    image.tree(GUEST, "/guest")
    image.tree(ROOT / "scripts/drivelab", f"{PROJECT}/scripts/drivelab", "*.py")
    image.tree(ROOT / "scripts/drivelab/core", f"{PROJECT}/scripts/drivelab/core", "*.txt")
    image.tree(ROOT / "scripts/drivelab/host/entries", f"{PROJECT}/scripts/drivelab/host/entries", "*.yaml")
    image.tree(ROOT / "workflow/schemas", f"{PROJECT}/workflow/schemas")
    _add_modules(image, kernel)
    image.programs(*(program for name in host.GUEST_PROGRAMS if (program := host.which(name)) is not None))
    image.programs(built_engine_path())
    _add_packages(image, unpacked)
    _add_busybox(image)
    _add_udev(image)
    _add_python(image)
    _add_compiled_project(image)
    _add_python_packages(image)
    image.write(path)


def libraries(files: Iterable[Path], root: Path = Path("/")) -> set[Path]:
    """Return the shared libraries and the loader that programs need (ldd(1)), from `root` or else from this host.

    Missing libraries are left out.
    """
    folders = sorted({str(path.parent) for path in root.glob("**/lib/**/*.so*")}) if root != Path("/") else []
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)} if folders else None
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False, env=environment).stdout
    return {Path(path) for path in re.findall(r"^\s(?:\S+ => )?(/\S+) \(0x", listed, re.MULTILINE)}


def _add_modules(image: Image, kernel: Kernel) -> None:
    """Add modules in load order: those that /init loads, and folders with those that tests load."""
    base = dict(kernel.load_order(WANTED))
    for folder, wanted in (("", ()), ("/stacking", STACKING)):
        modules = [module for module in kernel.load_order(WANTED + wanted) if not folder or module[0] not in base]
        for number, (name, content) in enumerate(modules):
            image.file(f"/modules{folder}/{number:02d}-{name}.ko", content)


def _add_packages(image: Image, directory: Path) -> None:
    programs = [path for name in packages.PROGRAMS if (path := packages.program(directory, name)) is not None]
    image.programs(*programs, root=directory)


def _add_busybox(image: Image) -> None:
    """Add busybox links in a separate folder, so that the real programs come first in PATH."""
    busybox = host.which("busybox")
    assert busybox is not None
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        image.link(f"/busybox/{name}", str(busybox))
    image.link("/usr/bin/sh", "dash")  # the shell of busybox prefers its applets to the real programs


def _add_udev(image: Image) -> None:
    for name in UDEV:
        path = Path(name)
        if path.suffix == ".rules":
            image.file(path, path)
        elif path.is_symlink():  # udevd is udevadm under another name
            image.link(name, str(path.resolve()))
        else:
            image.programs(path)
    for name in ("passwd", "group"):
        image.file(f"/etc/{name}", Path("/etc") / name)


def _add_python(image: Image) -> None:
    """Add the Python interpreter and its standard library."""
    python = Path(sys.executable).resolve()
    image.programs(python)
    image.link("/usr/bin/python3", str(python))
    library = Path(os.__file__).parent
    tag = sys.implementation.cache_tag
    extensions: list[Path] = []
    for path in sorted(library.rglob("*")):
        parts = set(path.relative_to(library).parts)
        if parts & _WITHOUT or any(part.startswith("config-") for part in parts) or not path.is_file():
            continue
        if path.name.endswith(".py") or path.name.endswith(f".{tag}.pyc"):
            image.file(path, path)
        elif path.suffix == ".so":
            extensions.append(path)
    image.programs(*extensions)


def _add_python_packages(image: Image) -> None:
    for name in PACKAGES:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        path = Path(found.origin)
        if path.name == "__init__.py":
            image.tree(path.parent, f"{PROJECT}/packages/{name}")
            _compile(image, path.parent, f"packages/{name}", "**/*.py")
        else:
            image.file(f"{PROJECT}/packages/{path.name}", path)
            _compile(image, path.parent, "packages", path.name)


def _add_compiled_project(image: Image) -> None:
    _compile(image, ROOT / "scripts/drivelab", "scripts/drivelab", "**/*.py")


def _compile(image: Image, source: Path, target: str, pattern: str) -> None:
    """Compile modules here, because an emulated processor takes seconds for it."""
    with tempfile.TemporaryDirectory() as temporary:
        compiled = Path(temporary) / "compiled.pyc"
        for path in sorted(source.glob(pattern)):
            inside = Path(PROJECT) / target / path.relative_to(source)
            py_compile.compile(
                str(path), str(compiled), dfile=str(inside), doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )  # fmt: skip
            name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            image.file(inside.parent / "__pycache__" / name, compiled.read_bytes())


def _write_entry(file: BinaryIO, number: int, path: str, mode: int, content: bytes | Path) -> None:
    data, time_s = (content, 0) if isinstance(content, bytes) else (content.read_bytes(), int(content.stat().st_mtime))
    name = path.lstrip("/").encode() + b"\0"
    if name == b"\0":
        return  # the root itself
    fields = (number, mode, 0, 0, 1, time_s, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    for part in (header + name, data):
        file.write(part + bytes(-len(part) % 4))
