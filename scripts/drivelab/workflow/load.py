"""Load what the Snakefile needs of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.study import DEFAULT_STUDY
from drivelab.workflow.cluster import Cluster
from drivelab.workflow.layout import Layout
from drivelab.workflow.scheduling import Scheduling


@contextmanager
def user_errors(shown: type[Exception]) -> Iterator[None]:
    """Turn a UserError into Snakemake's exception for mistakes in a workflow, which is shown without a traceback."""
    try:
        yield
    except UserError as error:
        raise shown(str(error)) from None


def load(config: Mapping[str, Any]) -> tuple[Layout, Scheduling, bool]:
    """Return the files of a study, the resources of its jobs, and whether figures are also PNG files.

    `config` is Snakemake's, valid by workflow/config.schema.yaml. Nothing is written. Raises UserError for a study that
    is not valid by its schema, or that cannot run here.
    """
    png = str(config.get("png", "yes")).lower() in ("yes", "true")
    cluster = Cluster.from_mapping(config["cluster"]) if "cluster" in config else None
    campaign = Campaign.load(config.get("study", DEFAULT_STUDY), everywhere=cluster is not None)
    layout = Layout(campaign, existing=config.get("report") == "existing")
    layout.check_owner()
    return layout, Scheduling(layout.campaign, cluster), png
