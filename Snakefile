"""drivelab: reproducible performance studies of storage drives, one study per run.

Plan of a study: snakemake -n --config study=config/demo.yaml. Add png=no to draw no PNG figures: a third less time.
"""

from snakemake.utils import min_version, validate

from drivelab.workflow.digest import digest
from drivelab.core.programs import shell_function
from drivelab.workflow import snakemake_internals
from drivelab.workflow.load import IMPORTS, WARM_UP, load

min_version("9.27")
validate(config, "workflow/config.schema.yaml")
with snakemake_internals.user_errors():
    layout, scheduling = load(config, starts=workflow.is_main_process)  # validates the study by its schema
    snakemake_internals.prepare(workflow, layout.locks)
for name, limit in scheduling.limits().items():
    workflow.register_resource(name, limit)
shell.prefix(shell_function("drivelab", "TERM"))  # its stages end even if Snakemake is killed


report: "workflow/report/workflow.rst"


pathvars:
    results=layout.results,


wildcard_constraints:
    drive="[a-z0-9-]+(@[a-z0-9-]+)?",
    measurement="[A-Za-z0-9.-]+",
    key=layout.KEY,


rule all:
    """Make the reports, and all other files of a study."""
    input:
        layout.targets(),


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
    snakemake_internals.start(workflow, IMPORTS, WARM_UP)


onsuccess:
    layout.release(keep=False)


onerror:
    layout.release(keep=True)
