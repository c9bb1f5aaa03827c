"""Deltas of every drive of a fleet against the basis, p-values adjusted for all of them."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.stages.fleet import outcomes_of
from drivelab.tables.fleet import write_deltas

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    study = snakemake.params.study
    write_deltas(outcomes, study["basis"], Path(snakemake.output.deltas), study["comparison"], study["intended"])
