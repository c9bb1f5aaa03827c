"""Load what the Snakefile needs of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.config.study import DEFAULT_STUDY
from drivelab.figures.registry import DRAWING
from drivelab.stages.cluster import Cluster
from drivelab.stages.fleet import Fleet
from drivelab.stages.layout import Layout
from drivelab.stages.locks import held
from drivelab.stages.planning import Campaign
from drivelab.stages.scheduling import Scheduling
from drivelab.stages.writable import require_writable

IMPORTS = ("drivelab.tables.collect", "drivelab.tables.inventory", "drivelab.analysis.detectors", *DRAWING)
"""Modules that the scripts of each recording import."""


def load(config: Mapping[str, Any], *, starts: bool) -> tuple[Layout, Scheduling, Fleet | None]:
    """Return the files of a study, the resources of its jobs, and its fleet if it is one.

    `config` is Snakemake's, valid by workflow/config.schema.yaml. `starts` says that this process starts the jobs, and
    is not a job itself: it checks the results folder and the outcomes of a fleet. Raises UserError for a study that is
    not valid by its schema, or that cannot run here.
    """
    png = str(config.get("png", "yes")).lower() in ("yes", "true")
    cluster = Cluster.from_mapping(config["cluster"]) if "cluster" in config else None
    study, drive = config.get("study", DEFAULT_STUDY), config.get("drive")
    layout = Layout(Campaign.load(study, drive=drive, everywhere=cluster is not None), png=png)
    layout.check_owner()
    if starts:
        require_writable(layout.campaign.study.results)
        if not held(layout.campaign.study.results):
            layout.drop_stale_plans()
    fleet = Fleet(layout, judges=starts) if layout.campaign.fleet else None
    return layout, Scheduling(layout.campaign, cluster), fleet
