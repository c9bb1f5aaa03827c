"""drivelab: reproducible performance studies of storage drives, one study per run.

Plan of a study: snakemake -n --config study=config/demo.yaml. Add png=no to draw no PNG figures: a third less time.
"""

import os

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from drivelab.core.jobs import SNAKEMAKE
from drivelab.core.programs import shell_function
from drivelab.core.termination import end_in_thread
from drivelab.figures.over_drives import OF_THE_STUDY
from drivelab.figures.registry import FIGURES, TRACE_FIGURES
from drivelab.recording.folders import STUDY_TABLES
from drivelab.workflow.facts import Facts
from drivelab.workflow.load import load, user_errors

min_version("9.27")
with user_errors(WorkflowError):
    layout, scheduling, png = load(config)
facts = Facts(layout.results, in_job=not workflow.is_main_process)
for name, limit in scheduling.limits().items():
    workflow.register_resource(name, limit)
shell.prefix(shell_function("drivelab", "TERM"))  # its stages end even if Snakemake is killed
os.environ[SNAKEMAKE] = str(os.getpid())  # and its scripts


report: "workflow/report/workflow.rst"


pathvars:
    results=layout.results,


wildcard_constraints:
    drive="(?!(comparison|traces)/)[a-z0-9-]+(@[a-z0-9-]+)?",
    measurement="[A-Za-z0-9.-]+",
    key=layout.KEY,
    trace=layout.trace_names(),
    analysis="[a-z]+",
    digest="[0-9a-f]{16}",


rule all:
    """Make the reports and whatever else of a study is missing."""
    input:
        "<results>/report/index.html",
        lambda wildcards: facts.paths,
        expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        expand("<results>/tables/{series}/made.json", series=layout.series),
        expand("<results>/figures/{series}", series=layout.series),
        expand("<results>/{kind}/traces/{trace}", kind=["tables", "figures"], trace=layout.traces()),
        expand("<results>/figures/comparison/{name}", name=layout.comparisons),
        expand("<results>/tables/{table}.parquet", table=STUDY_TABLES),


include: "workflow/rules/common.smk"
include: "workflow/rules/condition.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/trace.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


onstart:
    with user_errors(WorkflowError):
        scheduling.refuse_in_slurm()
        layout.claim()
    end_in_thread()
    # Else a timer of each ended job asks for other jobs once a second (pull request 3744 of Snakemake).
    workflow.scheduler.job_rate_limiter = None


onsuccess:
    layout.release(keep=False)


onerror:
    layout.release(keep=True)
