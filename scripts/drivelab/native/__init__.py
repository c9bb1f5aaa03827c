"""The compiled part: C sources in this folder, which `./drivelab setup` builds into the environment.

They are a library for ctypes, and the program that replays schedules (sources in `replay`, with liburing).
`python -m drivelab.native` builds both with the system's C compiler, without Python's headers.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from drivelab.core import programs
from drivelab.core.errors import UserError

SOURCES = Path(__file__).parent
COMPILER = ("cc", "-std=c11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror=incompatible-pointer-types")
ENGINE_SOURCES = SOURCES / "replay"
ENGINE_COMPILER = ("cc", "-std=c11", "-O3", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra",
                   "-Werror=incompatible-pointer-types")  # fmt: skip
ENGINE_LIBRARIES = ("-luring", "-lm")


def library_path() -> Path:
    """Return the path of the library built from exactly these sources."""
    return _product("native", ".so", SOURCES, COMPILER)


def engine_path() -> Path:
    """Return the path of the replay engine built from exactly these sources."""
    return _product("replay", "", ENGINE_SOURCES, (*ENGINE_COMPILER, *ENGINE_LIBRARIES))


def build() -> Path:
    """Compile what is not yet compiled, remove older builds, return the library; raises UserError on failure."""
    _build(library_path(), SOURCES, COMPILER, ())
    _build(engine_path(), ENGINE_SOURCES, ENGINE_COMPILER, ENGINE_LIBRARIES)
    return library_path()


@functools.cache
def load() -> ctypes.CDLL:
    """Return the built library; raises UserError if the setup has not built it."""
    library = library_path()
    if not library.exists():
        raise UserError("drivelab's compiled part is missing or of another version; run './drivelab setup'")
    return ctypes.CDLL(str(library))


def _product(stem: str, suffix: str, folder: Path, compiler: Sequence[str]) -> Path:
    digest = hashlib.sha256(" ".join(compiler).encode())
    for path in sorted(folder.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Path(sys.prefix) / "lib" / "drivelab" / f"{stem}-{digest.hexdigest()[:16]}{suffix}"


def _build(product: Path, folder: Path, compiler: Sequence[str], libraries: Sequence[str]) -> None:
    if product.exists():
        return
    product.parent.mkdir(parents=True, exist_ok=True)
    part = product.with_name(f"{product.name}.{os.getpid()}.part")
    command = [*compiler, "-o", str(part), *(str(path) for path in sorted(folder.glob("*.c"))), *libraries]
    try:
        done = programs.run(command)
    except FileNotFoundError:
        raise UserError(f"C compiler '{compiler[0]}' not found; install gcc and libc6-dev") from None
    if done.returncode:
        remedy = "; install liburing-dev" if "liburing.h" in done.stderr or "-luring" in done.stderr else ""
        message = done.stderr.strip() or "no message"
        raise UserError(f"cannot compile the C sources in {folder}{remedy}: {message}")
    part.replace(product)
    stem = product.name.partition("-")[0]
    for other in product.parent.glob(f"{stem}-*{product.suffix}"):
        if other != product and other.suffix == product.suffix:
            other.unlink(missing_ok=True)
