"""Fail unless every drive of a fleet was measured."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.workflow.fleet import outcomes_of, require_complete

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    require_complete(outcomes, snakemake.input.report)
    Path(snakemake.output.complete).write_text(f"{len(outcomes)} drives\n")
