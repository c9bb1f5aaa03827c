"""Load what the Snakefile needs of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.figures.registry import DRAWING
from drivelab.plan.study import DEFAULT_STUDY
from drivelab.workflow.cluster import Cluster
from drivelab.workflow.layout import Layout
from drivelab.workflow.locks import held, require_writable
from drivelab.workflow.scheduling import Scheduling

IMPORTS = ("drivelab.analysis.values.recording_tables", "ruptures", *DRAWING)
"""Modules that the scripts of each recording import, some of them only when a function needs them."""
WARM_UP = "drivelab.workflow.warm_up:warm_up"


def load(config: Mapping[str, Any], *, starts: bool) -> tuple[Layout, Scheduling]:
    """Return the files of a study, and the resources of its jobs.

    `config` is Snakemake's, valid by workflow/config.schema.yaml. `starts` says that this process starts the jobs, and
    is not a job itself: it checks the results folder. Raises UserError for a study that is not valid by its schema, or
    that cannot run here.
    """
    png = str(config.get("png", "yes")).lower() in ("yes", "true")
    cluster = Cluster.from_mapping(config["cluster"]) if "cluster" in config else None
    layout = Layout(Campaign.load(config.get("study", DEFAULT_STUDY), everywhere=cluster is not None), png=png)
    layout.check_owner()
    if starts:
        require_writable(layout.campaign.study.results)
        if not held(layout.campaign.study.results):
            layout.drop_stale_plans()
            layout.set_torn_aside()
    return layout, Scheduling(layout.campaign, cluster)
