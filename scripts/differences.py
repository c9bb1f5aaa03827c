"""Collect the conditions of recordings, and the differences between compared recordings."""

from pathlib import Path

from drivelab.analysis.deltas.differences import differences_table
from drivelab.analysis.exclusions import counted
from drivelab.collect.conditions import conditions
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    table = conditions(recordings, snakemake.params.altered, io.read(snakemake.input.cells, "cells"))
    io.write(table, snakemake.output.conditions, "conditions")
    sound = counted(table, io.read(snakemake.input.exclusions, "exclusions"))
    differences = differences_table(sound, snakemake.params.pairs, snakemake.params.intended)
    io.write(differences, snakemake.output.differences, "differences")
