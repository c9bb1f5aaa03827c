"""Write the report of a study: one self-contained HTML file."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.report.study_facts import write_report

NOT_TABLES = ("manifests", "figures", "every_table")

with reported(snakemake.log[0]):
    write_report(
        {name: paths for name, paths in snakemake.input.items() if name not in NOT_TABLES},
        [Path(manifest).parent for manifest in snakemake.input.manifests],
        map(Path, snakemake.input.figures),
        snakemake.params.study,
        map(Path, snakemake.input.every_table),
        Path(snakemake.output[0]),
    )
