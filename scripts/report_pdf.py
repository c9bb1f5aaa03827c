"""Write the test pages of a study: one PDF."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.report.pdf import pages, write_pdf
from drivelab.report.study_facts import gathered

NOT_TABLES = ("manifests", "figures")

with reported(snakemake.log[0]):
    tables = {name: paths for name, paths in snakemake.input.items() if name not in NOT_TABLES}
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    figures = [Path(figure) for figure in snakemake.input.figures]
    report, _ = gathered(tables, recordings, figures, snakemake.params.study)
    write_pdf(pages(report), Path(snakemake.output[0]))
