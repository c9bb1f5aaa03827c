"""Write the tables of a drive's recordings of one measurement, a folder for each recording."""

from datetime import UTC, datetime
from pathlib import Path

from drivelab.analysis.values.recording_tables import write_tables
from drivelab.core.jobs import reported
from drivelab.criteria.taint import Limits
from drivelab.recording.writer import write_json
from drivelab.workflow import facts

with reported(snakemake.log[0]):
    limits = Limits.from_mapping(facts.read(snakemake.input.facts))
    for recording in (Path(manifest).parent for manifest in snakemake.input.manifests):
        write_tables(recording, reduced=recording.name in snakemake.params.reduced, limits=limits)
    # The time makes the file differ from the one before, so that what reads the tables runs again.
    write_json(Path(snakemake.output[0]), {"at": f"{datetime.now(UTC)}", "runs": snakemake.params.runs})
