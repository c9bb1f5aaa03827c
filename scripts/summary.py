"""One value per drive, measurement and cell, with its spread and verdict."""

from drivelab.analysis.summary import summary_table
from drivelab.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    names = ("cells", "steady_state", "replays", "replay_passes")
    tables = {name: io.read(snakemake.input[name], name) for name in names}
    table = summary_table(**tables, rse_threshold_pct=snakemake.params.rse_threshold_pct)
    io.write(table, snakemake.output.summary, "summary")
