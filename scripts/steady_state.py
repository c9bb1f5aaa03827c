"""Steady-state windows of one recording."""

from drivelab.analysis.windows import windows_of_steps
from drivelab.tables import io

cells = io.read(snakemake.input.cells, "cells")
io.write(windows_of_steps(cells, snakemake.params.steps), snakemake.output.windows, "steady_state")
