"""List what is excluded from the results of a study."""

from pathlib import Path

from drivelab.analysis.exclusions import exclusions_table
from drivelab.core.errors import reported
from drivelab.explore.row_selection import recording_facts, strangers
from drivelab.tables import io

with reported(snakemake.log[0]):
    recordings = recording_facts([Path(manifest).parent for manifest in snakemake.input.manifests])
    others = strangers(
        [Path(folder) for folder in snakemake.params.others], snakemake.params.drives, snakemake.params.measurements
    )
    runs = {name: io.read(snakemake.input[name], name) for name in ("replays", "application_runs", "load_rates")}
    table = exclusions_table(io.read(snakemake.input.cells, "cells"), recordings, others, **runs)
    io.write(table, snakemake.output.exclusions, "exclusions")
