"""`drivelab init`: make a project folder for studies."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import drivelab
from drivelab.core.errors import UserError
from drivelab.core.private import make_private
from drivelab.plan.places import COMMAND, IS_INSTALLED, MARKER, ROOT, SHIPPED, is_project

_COPIED = ("config", "traces", "profiles", "scripts/applications")
"""Folders of a project. They are the user's: a new version of drivelab does not change a study's protocols."""
_SNAKEFILE = '''\
"""A project of drivelab. The workflow is part of the installed drivelab; your own rules can follow here."""

from drivelab.plan.places import SHIPPED


include: str(SHIPPED / "Snakefile")


rule study:
    """Make all files of a study."""
    input:
        rules.all.input,
'''
_IGNORED = "/results/\n/restored/\n/.snakemake/\n"


def add_parser(commands: Any) -> None:
    """Register `init`."""
    parser = commands.add_parser(
        "init",
        help="make a project folder",
        description="Makes a project folder: a first study, a drive sheet, protocols, traces, Snakemake profiles and a "
        "Snakefile. All other commands work in it. Its files are yours to edit and to keep under version control.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="new or empty folder")
    parser.set_defaults(handler=_init)


def _init(options: argparse.Namespace) -> int:
    make_project(options.folder)
    print(f"{options.folder}: a project with a first study, a drive sheet, protocols, traces and profiles. Next:")
    print(f"  cd {shlex.quote(str(options.folder))}")
    command = COMMAND if IS_INSTALLED else shlex.quote(str(SHIPPED / "drivelab"))
    print(f"  {command} demo      # two virtual drives, about eight minutes; touches no SSD")
    print(f"  {command} drives    # the drives of this host, for config/drives.tsv; then edit config/study.yaml")
    return 0


def make_project(folder: Path) -> None:
    """Write the files of a project into a new or empty folder; raises UserError for any other."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder}: is not a folder. Nothing was written. Name a new folder.")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty. Nothing was written. Name a new folder.")
    for name in _COPIED:  # copyfile: an installation may be read-only, a project is not
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SHIPPED / name, folder / name, copy_function=shutil.copyfile, ignore=ignored)
    (folder / "Snakefile").write_text(_SNAKEFILE, encoding="utf-8")
    (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")
    (folder / MARKER).write_text(f"project folder, made by drivelab {drivelab.__version__}\n", encoding="utf-8")


def project_or_home() -> Path:
    """Return the project's folder; outside a project, a folder of the user that has the shipped configuration."""
    if is_project():
        return ROOT
    base = os.environ.get("XDG_DATA_HOME", "")
    folder = (Path(base) if base.startswith("/") else Path.home() / ".local/share") / "drivelab"
    make_private(folder, remedy="Set XDG_DATA_HOME to a folder that you own")
    for name in ("config", "traces"):
        link = folder / name
        if not link.exists() or link.resolve() != SHIPPED / name:  # another installation made it
            link.unlink(missing_ok=True)
            link.symlink_to(SHIPPED / name)
    return folder
