"""The compiled part: C sources in this folder, built by the set-up into the environment, loaded with ctypes.

`python -m drivelab.native` builds it with the system's C compiler, without Python's headers.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from drivelab.errors import UserError

SOURCES = Path(__file__).parent
COMPILER = ("cc", "-std=c11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror=incompatible-pointer-types")


def library_path() -> Path:
    """Where the library of these very sources lies when it has been built."""
    digest = hashlib.sha256(" ".join(COMPILER).encode())
    for path in sorted(SOURCES.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Path(sys.prefix) / "lib" / "drivelab" / f"native-{digest.hexdigest()[:16]}.so"


def build() -> Path:
    """Compile the sources unless that has been done; older libraries go. Raises UserError when it cannot be done."""
    library = library_path()
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    part = library.with_suffix(f".{os.getpid()}.part")
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    try:
        done = subprocess.run([*COMPILER, "-o", str(part), *sources], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError(f"there is no C compiler '{COMPILER[0]}'; install gcc and libc6-dev") from None
    if done.returncode:
        raise UserError(f"the C sources in {SOURCES} cannot be compiled: {done.stderr.strip() or 'no message'}")
    part.replace(library)
    for other in library.parent.glob("native-*.so"):
        if other != library:
            other.unlink(missing_ok=True)
    return library


@functools.cache
def load() -> ctypes.CDLL:
    """The built library; raises UserError when the set-up has not built it."""
    library = library_path()
    if not library.exists():
        raise UserError("drivelab's compiled part is missing or not of this version; run './drivelab setup'")
    return ctypes.CDLL(str(library))
