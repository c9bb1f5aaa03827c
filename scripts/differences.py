"""What recordings were made under, and what compared ones differ in."""

from pathlib import Path

from drivelab.analysis.differences import differences_table
from drivelab.analysis.exclusions import counted
from drivelab.errors import reported
from drivelab.tables import io
from drivelab.tables.conditions import conditions

with reported(snakemake.log[0]):
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    table = conditions(recordings, snakemake.params.altered, io.read(snakemake.input.cells, "cells"))
    io.write(table, snakemake.output.conditions, "conditions")
    sound = counted(table, io.read(snakemake.input.exclusions, "exclusions"))
    found = differences_table(sound, snakemake.params.pairs, snakemake.params.intended)
    io.write(found, snakemake.output.differences, "differences")
