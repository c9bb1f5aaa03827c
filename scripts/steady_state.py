"""Find the steady-state windows of one recording."""

from drivelab.core.errors import reported
from drivelab.tables import io
from drivelab.tables.windows import windows_table

with reported(snakemake.log[0]):
    steps = enumerate(snakemake.params.steps)
    criteria = {number: step["loop"]["until"] for number, step in steps if "loop" in step}
    io.write(windows_table(io.read(snakemake.input.cells, "cells"), criteria), snakemake.output.windows, "steady_state")
