"""Deltas of every drive of a fleet against the basis, p-values adjusted for all of them."""

import shutil
from pathlib import Path

from drivelab.errors import reported
from drivelab.stages.fleet import outcomes_of
from drivelab.tables.fleet import write_deltas

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    study = snakemake.params.study
    made = Path(snakemake.output.deltas)
    shutil.rmtree(made.parent)  # those of drives that are no longer the study's
    write_deltas(outcomes, study["basis"], made.parent, study["comparison"], study["intended"])
    made.write_text("".join(f"{one.name}\n" for one in sorted(made.parent.iterdir())))
