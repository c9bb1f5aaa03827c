"""`drivelab run` and `drivelab demo`: run a study with Snakemake, show progress and headline results."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from drivelab.cli.parser import Parser
from drivelab.core.errors import UserError
from drivelab.plan.places import ROOT, refuse_foreign_file, require_project, restored_folder

ASK, WAIT, CONTINUE = "ask", "wait", "continue"
WHEN_BUSY = (ASK, WAIT, CONTINUE)
"""What to do if other programs use the machine."""
DEMO_STUDY = "config/demo.yaml"


def add_parser(commands: Any) -> None:
    """Register `run` and `demo`."""
    parser = commands.add_parser("run", help="run a study, or the unfinished part of it")
    parser.study()
    _common(parser)
    parser = commands.add_parser("demo", help="run the demo study on two virtual drives")
    _common(parser)
    parser.set_defaults(study=DEMO_STUDY)


def _common(parser: Parser) -> None:
    parser.flag("--yes", "allow drivelab to destroy the data on the study's drives")
    parser.add_argument("--cores", type=_count, default=os.cpu_count() or 1, help="CPU cores for the analysis")
    parser.add_argument(
        "--when-busy",
        choices=WHEN_BUSY,
        default=ASK,
        help="what to do if other programs use the machine (default: ask on a terminal, otherwise continue)",
    )
    parser.add_argument("--profile", type=Path, help="Snakemake profile, such as profiles/slurm")
    parser.set_defaults(handler=_run)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of CPU cores; give 1 or more")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    from drivelab.cli.measure.runner import run_study

    profile = options.profile
    if profile is not None and not profile.is_dir() and not (profile := ROOT / profile).is_dir():
        raise UserError(f"{options.profile}: is not the folder of a Snakemake profile; drivelab ships profiles/slurm")
    if profile is not None:
        profile = profile.resolve()
        refuse_foreign_file(profile)
    study = in_project(options.study)
    refuse_foreign_file(study)
    return run_study(study, options.cores, options.yes, profile, options.when_busy)


def in_project(study: str) -> Path:
    """Change to the study's folder and return the study's path relative to it.

    The folder is the project's, or the one that the study was restored into. `study` may be relative to the current
    folder or to the project's. Raises UserError outside a project.
    """
    given = next((path for path in (Path(study), ROOT / study) if path.exists()), None)
    folder = ROOT if given is None else restored_folder(given) or ROOT
    if folder == ROOT:
        require_project()
    path = Path(study) if given is None else Path(os.path.relpath(given.resolve(), folder))
    os.chdir(folder)
    return path
