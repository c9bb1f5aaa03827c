"""Compute the deltas of every drive of a fleet against the basis, adjusted over all drives, and those of models."""

import shutil
from pathlib import Path

from drivelab.analysis.deltas.models import model_deltas
from drivelab.analysis.fleet_parts import by_measurement, write_deltas
from drivelab.core.errors import reported
from drivelab.tables import io
from drivelab.workflow.fleet import outcomes_of

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    study = snakemake.params.study
    listing = Path(snakemake.output.deltas)
    shutil.rmtree(listing.parent)  # it may hold drives that are no longer in the study
    write_deltas(outcomes, study["basis"], listing.parent, study["comparison"], study["intended"])
    listing.write_text("".join(f"{file.name}\n" for file in sorted(listing.parent.iterdir())))
    terms = {name: study["comparison"][name] for name in ("margin_pct", "confidence_pct")}
    summaries = by_measurement(outcomes) if study["models"] else []
    io.write(model_deltas(summaries, study["models"], study["basis"], **terms), snakemake.output.models, "model_deltas")
