"""Write what an analysis needs to know of the study."""

from pathlib import Path

from drivelab.core.jobs import reported
from drivelab.workflow import facts

with reported(snakemake.log[0]):
    facts.write(snakemake.params.text, Path(snakemake.output[0]))
