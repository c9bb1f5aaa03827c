"""Leave out what drivelab does not use of its packages: a third of a Python environment.

`python -m drivelab.core.prune` does this for the environment of that Python, if it is drivelab's own.
"""

from __future__ import annotations

import filecmp
import re
import shutil
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.programs import run

SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
_UNUSED = (
    "**/__pycache__",  # Python compiles again what it imports, a third of this
    "**/tests", "numpy/_core/_simd*", "pyarrow/*_tests.*", "sqlalchemy/testing", "jsonschema/benchmarks",
    *(f"**/*.{ending}" for ending in ("a", "c", "h", "cpp", "hpp", "pxd", "pxi", "pyx", "exe")),
    "pulp/solverdir", "duckdb/experimental", "matplotlib/mpl-data/sample_data", "*.dist-info/sboms",
    "pyarrow/include", "pyarrow/src", "pyarrow/*flight*", "pyarrow/*_s3*",
    "pyarrow/libarrow_python.so", "pyarrow/libarrow_python.so.*.*",  # copies of libarrow_python.so.*
    "scipy/io", "scipy/cluster", "scipy/odr", "scipy/stats/_unuran",
    "PIL/_avif.*", "PIL/_webp.*", "PIL/_imagingcms.*", "PIL/_imagingft.*",
    *(f"pillow.libs/lib{name}*" for name in
      ("avif", "brotli", "freetype", "harfbuzz", "lcms2", "png16", "sharpyuv", "webp")),
)  # fmt: skip
"""Tests, C sources, Windows programs, solvers, Arrow's Flight and S3, parts of SciPy, sample data, AVIF and WebP …"""
_REWRITTEN = ("numpy", "scipy", "PIL")
"""Packages whose libraries were rewritten (patchelf), as all in *.libs: strip may damage them."""
_INSTALLERS = {"pip", "setuptools", "wheel"}


def prune(packages: Path) -> None:
    """Remove from a folder site-packages what drivelab does not use, and the symbols for debuggers."""
    for pattern in _UNUSED:
        for path in list(packages.glob(pattern)):
            if path.relative_to(packages).parts[0] == "drivelab" and path.name != "__pycache__":
                continue  # it compiles its C sources on the user's machine
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    for library in packages.glob("numpy.libs/*"):
        other = packages / "scipy.libs" / library.name
        if other.exists() and filecmp.cmp(library, other, shallow=False):
            other.unlink()
            other.hardlink_to(library)
    if shutil.which("strip"):
        for library in list(packages.rglob("*.so*")):
            top = library.relative_to(packages).parts[0]
            if top not in _REWRITTEN and not top.endswith(".libs"):
                _strip(library)


def _strip(library: Path) -> None:
    # A new file: uv links the files of several environments.
    stripped = library.with_name(f"{library.name}.stripped")
    if run(["strip", "--strip-unneeded", "-o", str(stripped), str(library)]).returncode == 0:
        stripped.replace(library)
    else:
        stripped.unlink(missing_ok=True)


def strangers() -> list[str]:
    """Return the packages of this Python that neither drivelab nor its extras need."""
    needed, waiting = set(_INSTALLERS), ["drivelab"]
    installed = {_canonical(found.name): found.requires or () for found in distributions()}
    while waiting:
        name = waiting.pop()
        if name in installed and name not in needed:
            needed.add(name)
            lines = [line for line in installed[name] if name == "drivelab" or "extra ==" not in line]
            waiting += [_canonical(re.split(r"[^\w.-]", line)[0]) for line in lines]
    return sorted(installed.keys() - needed)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Prune the environment of this Python. Refuse if others use it too."""
    if sys.prefix == sys.base_prefix:
        raise UserError(
            f"{sys.prefix} is not a virtual environment, so other programs use its packages. Nothing was removed. "
            "Install drivelab with pipx, and run this with the Python of its environment."
        )
    if others := strangers():
        raise UserError(
            f"{sys.prefix} also has {', '.join(others[:3])}, which drivelab does not need and which may use what would "
            "be removed. Nothing was removed. Install drivelab with pipx: its environment has no other packages."
        )
    prune(SITE_PACKAGES)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"drivelab: {error}")
