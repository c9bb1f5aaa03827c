"""drivelab: reproducible performance studies of storage drives.

One study a run: snakemake --config study=config/demo.yaml
With `--config png=no` figures are not made as PNG, which the report needs none of: a third less time for them.
"""

from snakemake.exceptions import WorkflowError

from drivelab.config.code_digest import code_digest, files_digest
from drivelab.config.study import DEFAULT_STUDY
from drivelab.errors import UserError
from drivelab.stages.layout import KEY, Layout
from drivelab.stages.planning import Campaign

try:
    png = str(config.get("png", "yes")).lower() in ("yes", "true")  # what is given by --config is text
    layout = Layout(Campaign.load(config.get("study", DEFAULT_STUDY)), png=png)
    layout.check_owner()
except UserError as error:
    raise WorkflowError(str(error)) from None

workflow.global_resources.update(layout.host_limits())
# A Snakemake that is killed takes the stage with it: nothing goes on with a drive that nobody watches (prctl(2)).
STAGE = "exec setpriv --pdeathsig TERM drivelab"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    drive="[a-z0-9-]+(@[a-z0-9-]+)?",
    measurement="[A-Za-z0-9.-]+",
    key=KEY,


rule all:
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


onsuccess:
    shell(layout.release_command(keep=False))


onerror:
    shell(layout.release_command(keep=True))
