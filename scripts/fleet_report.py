"""Write the report of a fleet: one self-contained HTML file."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.report.fleet_page import write_report
from drivelab.workflow.fleet import outcomes_of

TABLES = ("fleet_drives", "fleet_spread", "fleet_deviations", "fleet_hosts")

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    tables = {name: Path(snakemake.input[name]) for name in TABLES}
    tables["model_deltas"] = Path(snakemake.input.models)
    tables["deltas"] = Path(snakemake.input.deltas).parent
    write_report(tables, outcomes, snakemake.params.study, Path(snakemake.output[0]))
