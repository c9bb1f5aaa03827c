"""Load what the Snakefile needs of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.campaign.results_folder import refuse_foreign
from drivelab.core.errors import UserError
from drivelab.plan.study import DEFAULT_STUDY
from drivelab.workflow.cluster import Cluster
from drivelab.workflow.layout import Layout
from drivelab.workflow.scheduling import Scheduling

KEYS = {
    "study": "study=config/study.yaml, the study to run",
    "png": "png=no draws no PNG figures",
    "report": "report=existing analyses only what was measured",
    "cluster": "cluster, in the cluster.yaml of a profile",
}
"""Keys of Snakemake's configuration, and what they do."""


def _check(config: Mapping[str, Any]) -> None:
    """Raise UserError for a key that is no setting, or for a value of a wrong kind."""
    if unknown := [key for key in config if key not in KEYS]:
        hint = "to run a study, name its file: snakemake --config study=FILE; "
        raise UserError(
            f"Snakemake's configuration has the key '{unknown[0]}', which the workflow does not know; "
            f"{hint * ('drives' in config)}the keys are: {'; '.join(KEYS.values())}"
        )
    if not isinstance(config.get("study", ""), str):
        raise UserError(f"Snakemake's configuration has study={config['study']}; name a file: study=config/study.yaml")
    if str(config.get("png", "yes")).lower() not in ("yes", "no", "true", "false"):
        raise UserError(f"Snakemake's configuration has png={config['png']}; give png=yes or png=no")
    if config.get("report", "existing") != "existing":
        raise UserError(f"Snakemake's configuration has report={config['report']}; give report=existing, or nothing")
    if not isinstance(config.get("cluster", {}), Mapping):
        raise UserError("Snakemake's configuration has a key 'cluster' without keys; see profiles/slurm/cluster.yaml")


@contextmanager
def user_errors(shown: type[Exception]) -> Iterator[None]:
    """Turn a UserError into Snakemake's exception for mistakes in a workflow, which is shown without a traceback."""
    try:
        yield
    except UserError as error:
        raise shown(str(error)) from None


def load(config: Mapping[str, Any]) -> tuple[Layout, Scheduling, bool]:
    """Return the files of a study, the resources of its jobs, and whether figures are also PNG files.

    `config` is Snakemake's. Nothing is written. Raises UserError for keys that are not settings of the workflow, for a
    study that is not valid by its schema, or that cannot run here.
    """
    _check(config)
    png = str(config.get("png", "yes")).lower() in ("yes", "true")
    cluster = Cluster.from_mapping(config["cluster"]) if "cluster" in config else None
    campaign = Campaign.load(config.get("study", DEFAULT_STUDY), everywhere=cluster is not None)
    refuse_foreign(campaign.study)
    layout = Layout(campaign, existing=config.get("report") == "existing")
    return layout, Scheduling(layout.campaign, cluster), png
