"""Build backend: setuptools, which also takes into the wheel what drivelab ships beside its Python package.

The files keep their places in the checkout. In the wheel they are in drivelab/shipped.
"""

import shutil
from pathlib import Path

from setuptools.build_meta import *  # noqa: F403 - the hooks of PEP 517
from setuptools.command.build_py import build_py

SHIPPED = ("Snakefile", "workflow/**/*", "profiles/**/*", "config/**/*", "traces/**/*", "scripts/*.py",
           "scripts/applications/*")  # fmt: skip


def shipped() -> list[Path]:
    """Return the shipped files, relative to the checkout."""
    paths = {path for pattern in SHIPPED for path in Path().glob(pattern)}
    return sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts)


class BuildPy(build_py):
    """Copies the shipped files into the package. An editable installation reads them from the checkout."""

    def run(self) -> None:
        """Build the package, then add the shipped files."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "drivelab/shipped")
        shutil.rmtree(target, ignore_errors=True)  # from an earlier build
        for path in shipped():
            self.mkpath(str((target / path).parent))
            self.copy_file(str(path), str(target / path))

    def get_source_files(self) -> list[str]:
        """Return the files of a source distribution."""
        return [*super().get_source_files(), *map(str, shipped())]
