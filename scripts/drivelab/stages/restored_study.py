"""Keeps a restored study from running its own commands, and Snakemake from reading its folder as code.

Files of a restored study are data. A command of the archive runs only if this project's own configuration has the same
one: the user agrees to a command by copying it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.config.restored import restored_folder
from drivelab.config.schema import ROOT
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.stages.planned_application import APPLICATIONS
from drivelab.trace import application
from drivelab.trace.application import Application

if TYPE_CHECKING:
    from drivelab.stages.planning import Campaign


def snakemake_arguments() -> list[str]:
    """Return the arguments that point Snakemake from a restored folder to this project; empty elsewhere."""
    if restored_folder(Path.cwd()) is None:
        return []
    return ["--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", str(ROOT / "profiles/default")]


def snakemake_environment() -> dict[str, str]:
    """Return variables that keep Python from importing files of a restored folder; empty elsewhere."""
    return {} if restored_folder(Path.cwd()) is None else {"PYTHONSAFEPATH": "1"}


def refuse_foreign_commands(plan: Plan) -> None:
    """Raise UserError if a plan of a restored study would run a command that this project lacks."""
    folder = restored_folder(Path(plan.context["results"]))
    if folder is None or plan.clock == "virtual":
        return
    if command := plan.context.get("meter", {}).get("command"):
        raise UserError(
            f"{folder}: the restored study reads its power meter with the command {_quoted(command)}. A command from "
            "an archive is not run. Remove the key 'meter' from the study, or copy the study into your own project."
        )
    if "application" in plan.subject:
        refuse_foreign_application(application.of_plan(plan), folder)


def refuse_foreign_application(spec: Application, place: Path) -> None:
    """Raise UserError if `place` is in a restored folder and the project has no application with the same commands."""
    folder = restored_folder(place)
    if folder is None:
        return
    try:
        own = application.load(ROOT / APPLICATIONS, spec.name).to_mapping()
    except UserError:
        own = {}
    if own != spec.to_mapping():
        commands = "; ".join(_quoted(words) for words in (*spec.set_up, spec.command, *spec.tear_down))
        raise UserError(
            f"{folder}: application '{spec.name}' of the restored study would run {commands}. A command from an "
            f"archive is not run. If you trust it, copy its entry into {ROOT / APPLICATIONS}."
        )


def refuse_foreign_campaign(campaign: Campaign) -> None:
    """Raise UserError for the first foreign command that the remaining work would run."""
    for plan in campaign.to_do:
        refuse_foreign_commands(plan)
    for name, source in campaign.study.traces.items():
        if source.capture and campaign.trace_is_captured(name) and not campaign.trace_path(name).exists():
            refuse_foreign_application(application.load(APPLICATIONS, source.capture), campaign.study.results)


def _quoted(words: Iterable[Any]) -> str:
    """Return a command in Python notation, without control characters."""
    return ascii([str(word) for word in words])
