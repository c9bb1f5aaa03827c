"""The compiled part: C sources in this folder, built by `./drivelab setup` or at their first use.

They are a library for ctypes, the program that replays schedules (sources in `replay`, with liburing), and the barrier
that holds a prepared fio (source in `barrier`). `python -m drivelab.native` builds all with the system's C compiler,
without Python's headers. The products are kept in the virtual environment, or in the user's cache folder if there is
none that the user may write to.
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
from drivelab.core.private import refuse_shared

SOURCES = Path(__file__).parent
COMPILER = ("cc", "-std=c11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror=incompatible-pointer-types")
ENGINE_SOURCES = SOURCES / "replay"
ENGINE_COMPILER = ("cc", "-std=c11", "-O3", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra",
                   "-Werror=incompatible-pointer-types")  # fmt: skip
ENGINE_LIBRARIES = ("-luring", "-lm")
BARRIER_SOURCES = SOURCES / "barrier"
BARRIER_COMPILER = (*ENGINE_COMPILER, "-fPIC", "-shared")


def library_path() -> Path:
    """Return the path of the library built from exactly these sources."""
    return _product("native", ".so", SOURCES, COMPILER)


def engine_path() -> Path:
    """Return the path of the replay engine built from exactly these sources."""
    return _product("replay", "", ENGINE_SOURCES, (*ENGINE_COMPILER, *ENGINE_LIBRARIES))


def build() -> Path:
    """Compile what is not yet compiled, remove older builds, return the library; raises UserError on failure."""
    built_engine_path()
    built_barrier_path()
    return _built_library_path()


def _built_library_path() -> Path:
    return _build(library_path(), SOURCES, COMPILER, ())


def built_engine_path() -> Path:
    """Return the path of the replay engine, compiled now if it was not; raises UserError on failure."""
    return _build(engine_path(), ENGINE_SOURCES, ENGINE_COMPILER, ENGINE_LIBRARIES)


def built_barrier_path() -> Path:
    """Return the path of the barrier for fio, compiled now if it was not; raises UserError on failure."""
    product = _product("barrier", ".so", BARRIER_SOURCES, BARRIER_COMPILER)
    return _build(product, BARRIER_SOURCES, BARRIER_COMPILER, ())


@functools.cache
def load() -> ctypes.CDLL:
    """Return the library, compiled now if it was not; raises UserError on failure."""
    return ctypes.CDLL(str(_built_library_path()))


def _product(stem: str, suffix: str, folder: Path, compiler: Sequence[str]) -> Path:
    digest = hashlib.sha256(" ".join(compiler).encode())
    for path in sorted(folder.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return _place_of(f"{stem}-{digest.hexdigest()[:16]}{suffix}")


def _place_of(name: str) -> Path:
    """Return the path of a product: in the virtual environment, or in the user's cache folder."""
    environment = Path(sys.prefix) / "lib" / "drivelab"
    is_own = sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK)
    return (environment if is_own or (environment / name).exists() else _cache()) / name


def _cache() -> Path:
    """Return the user's folder for products, after the XDG Base Directory Specification."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    cache = (Path(folder) if folder.startswith("/") else Path.home() / ".cache") / "drivelab"
    refuse_shared(cache, "Set XDG_CACHE_HOME to a folder that you own")  # drivelab loads and runs the products
    return cache


def _build(product: Path, folder: Path, compiler: Sequence[str], libraries: Sequence[str]) -> Path:
    """Compile a product if it does not exist; return it."""
    if product.exists():
        return product
    product.parent.mkdir(0o755, parents=True, exist_ok=True)
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
    return product
