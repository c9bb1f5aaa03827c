"""The compiled part: C sources in this folder, built by the set-up into the environment.

A library that is loaded with ctypes, and the program that replays schedules (sources in `replay`, with liburing).
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

from drivelab import parent
from drivelab.errors import UserError

SOURCES = Path(__file__).parent
COMPILER = ("cc", "-std=c11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror=incompatible-pointer-types")
ENGINE_SOURCES = SOURCES / "replay"
ENGINE_COMPILER = ("cc", "-std=c11", "-O3", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra",
                   "-Werror=incompatible-pointer-types")  # fmt: skip
ENGINE_LIBRARIES = ("-luring", "-lm")


def library_path() -> Path:
    """Where the library of these very sources lies when it has been built."""
    return _product("native", ".so", SOURCES, COMPILER)


def engine_path() -> Path:
    """Where the replay engine of these very sources lies when it has been built."""
    return _product("replay", "", ENGINE_SOURCES, (*ENGINE_COMPILER, *ENGINE_LIBRARIES))


def build() -> Path:
    """Compile what has not been compiled, and return the library; older ones go. Raises UserError when it cannot be."""
    _build(library_path(), SOURCES, COMPILER, ())
    _build(engine_path(), ENGINE_SOURCES, ENGINE_COMPILER, ENGINE_LIBRARIES)
    return library_path()


@functools.cache
def load() -> ctypes.CDLL:
    """The built library; raises UserError when the set-up has not built it."""
    library = library_path()
    if not library.exists():
        raise UserError("drivelab's compiled part is missing or not of this version; run './drivelab setup'")
    return ctypes.CDLL(str(library))


def _product(stem: str, suffix: str, folder: Path, words: Sequence[str]) -> Path:
    digest = hashlib.sha256(" ".join(words).encode())
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
        done = parent.run(command)
    except FileNotFoundError:
        raise UserError(f"there is no C compiler '{compiler[0]}'; install gcc and libc6-dev") from None
    if done.returncode:
        remedy = "; install liburing-dev" if "liburing.h" in done.stderr or "-luring" in done.stderr else ""
        words = done.stderr.strip() or "no message"
        raise UserError(f"the C sources in {folder} cannot be compiled{remedy}: {words}")
    part.replace(product)
    stem = product.name.partition("-")[0]
    for other in product.parent.glob(f"{stem}-*{product.suffix}"):
        if other != product and other.suffix == product.suffix:
            other.unlink(missing_ok=True)
