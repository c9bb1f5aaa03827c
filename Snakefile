"""drivelab: reproducible performance studies of storage drives.

One study per run: snakemake --config study=config/demo.yaml
`--config png=no` skips the PNG figures, which the report does not need, and saves a third of the drawing time.
"""

import shlex

from snakemake.exceptions import WorkflowError
from snakemake.script import PythonScript

from drivelab.config.code_digest import code_digest, files_digest
from drivelab.config.study import DEFAULT_STUDY
from drivelab.errors import UserError
from drivelab.figures.registry import DRAWING
from drivelab.forks import Forks
from drivelab.parent import ending_with_parent
from drivelab.snakemake_records import require_file_backend
from drivelab.stages.cluster import Cluster
from drivelab.stages.fleet import Fleet
from drivelab.stages.layout import KEY, Layout
from drivelab.stages.locks import held
from drivelab.stages.planning import Campaign
from drivelab.stages.scheduling import Scheduling
from drivelab.stages.writable import require_writable
from drivelab.termination import on_termination

try:
    require_file_backend(workflow.workflow_settings.persistence_backend)
    png = str(config.get("png", "yes")).lower() in ("yes", "true")  # --config gives text
    cluster = Cluster.from_mapping(config["cluster"]) if "cluster" in config else None
    study, drive = config.get("study", DEFAULT_STUDY), config.get("drive")
    layout = Layout(Campaign.load(study, drive=drive, everywhere=cluster is not None), png=png)
    layout.check_owner()
    if workflow.is_main_process:
        require_writable(layout.campaign.study.results)
        if not held(layout.campaign.study.results):
            layout.drop_stale_plans()
    scheduling = Scheduling(layout.campaign, cluster)
    fleet = Fleet(layout, judges=workflow.is_main_process) if layout.campaign.fleet else None
except UserError as error:
    raise WorkflowError(str(error)) from None

workflow.global_resources.update(fleet.limits(scheduling) if fleet else scheduling.limits())
# If Snakemake is killed, its stage ends too: no process uses a drive unsupervised.
STAGE = shlex.join(["exec", *ending_with_parent("TERM"), "drivelab"])


report: "workflow/report/workflow.rst"


wildcard_constraints:
    drive="[a-z0-9-]+(@[a-z0-9-]+)?",
    measurement="[A-Za-z0-9.-]+",
    key=KEY,


localrules:
    all,
    plan,
    capture,
    exclusions,
    summary,
    differences,
    deltas,


rule all:
    input:
        fleet.targets() if fleet else layout.targets(),


include: "workflow/rules/records.smk"


if fleet:

    include: "workflow/rules/fleet.smk"

else:

    include: "workflow/rules/plan.smk"
    include: "workflow/rules/condition.smk"
    include: "workflow/rules/measure.smk"
    include: "workflow/rules/trace.smk"
    include: "workflow/rules/tables.smk"
    include: "workflow/rules/analysis.smk"
    include: "workflow/rules/figures.smk"
    include: "workflow/rules/report.smk"


onstart:
    layout.claim()
    on_termination(workflow.scheduler.exit_gracefully)
    if workflow.local_exec and workflow.is_main_process:
        # The scripts of each recording import these modules.
        imported = [
            "snakemake.script",
            "drivelab.tables.collect",
            "drivelab.tables.inventory",
            "drivelab.analysis.detectors",
        ]
        forks = Forks([*imported, *DRAWING])
        PythonScript.execute_script = lambda script, path, edit=False: forks.run(path)
        # With a limit of jobs per second, Snakemake polls once a second for each job that has ended (its pull request
        # 3744). After some hours that takes a whole core of the measuring host.
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    shell(layout.release_command(keep=False))


onerror:
    shell(layout.release_command(keep=True))
