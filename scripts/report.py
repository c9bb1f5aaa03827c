"""Write the report of a study: one self-contained HTML file."""

from pathlib import Path

from drivelab.core.jobs import reported
from drivelab.report.content import write_report
from drivelab.workflow import facts

with reported(snakemake.log[0]):
    write_report(facts.read(snakemake.input.facts), Path(snakemake.output[0]))
