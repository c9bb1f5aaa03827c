"""The wheel of this checkout, and clean environments without the checkout on their paths."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from drivelab.plan.places import ROOT

SOURCES = ("Snakefile", "workflow", "profiles", "config", "traces", "scripts", "tools", "pyproject.toml", "README.md",
           "LICENSE")  # fmt: skip
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def build_wheel(folder: Path, *options: str) -> Path:
    """Return the wheel of a copy of the checkout's sources, built by `pip wheel` in a folder."""
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    wheels = folder / "wheels"
    subprocess.run([*PIP, "wheel", "-q", "--no-deps", *options, "-w", wheels, sources], check=True)
    shutil.rmtree(sources)
    (wheel,) = wheels.iterdir()
    return wheel


def make_environment(folder: Path) -> Path:
    """Return the Python of a new virtual environment with nothing in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin/python"


def variables(python: Path, home: Path) -> dict[str, str]:
    """Return variables for a command of an environment: no other `drivelab` is on PATH, and data goes below `home`."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DRIVELAB_PROJECT")}
    path = f"{python.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    return {**kept, "PATH": path, "XDG_DATA_HOME": str(home / "data"), "XDG_CACHE_HOME": str(home / "cache")}
