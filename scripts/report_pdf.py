"""Write the test pages of a study: one PDF."""

from pathlib import Path

from drivelab.core.jobs import reported
from drivelab.report.pdf import pages, write_pdf
from drivelab.report.study_facts import gathered
from drivelab.workflow import facts

with reported(snakemake.log[0]):
    output = Path(snakemake.output[0])
    report, _ = gathered(facts.read(snakemake.input.facts), output.parents[1])
    write_pdf(pages(report), output)
