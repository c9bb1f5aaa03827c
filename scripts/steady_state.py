"""Steady-state windows of one recording."""

from drivelab.analysis.windows import windows_table
from drivelab.tables import io

steps = enumerate(snakemake.params.steps)
criteria = {number: step["loop"]["until"] for number, step in steps if "loop" in step}
io.write(windows_table(io.read(snakemake.input.cells, "cells"), criteria), snakemake.output.windows, "steady_state")
