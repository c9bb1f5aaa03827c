"""Compute the deltas of every drive of a fleet against the basis, with p-values adjusted over all drives."""

import shutil
from pathlib import Path

from drivelab.analysis.fleet_parts import write_deltas
from drivelab.core.errors import reported
from drivelab.workflow.fleet import outcomes_of

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    study = snakemake.params.study
    listing = Path(snakemake.output.deltas)
    shutil.rmtree(listing.parent)  # it may hold drives that are no longer in the study
    write_deltas(outcomes, study["basis"], listing.parent, study["comparison"], study["intended"])
    listing.write_text("".join(f"{file.name}\n" for file in sorted(listing.parent.iterdir())))
