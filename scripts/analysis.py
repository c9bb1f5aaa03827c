"""Compute the tables of a study: its drives, hosts and traces, what counts, the summary, the comparison, datasets."""

from pathlib import Path

from drivelab.analysis.study_tables import study_tables
from drivelab.collect.inventory import inventory_tables
from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.plan.design import JUDGED
from drivelab.recording.writer import write_json
from drivelab.tables import datasets, io
from drivelab.workflow import facts

with reported(snakemake.log[0]):
    study = facts.read(snakemake.input.facts)
    results = Path(snakemake.output[0]).parents[1]
    recordings = [results / "recordings" / name for name in study["recordings"]]
    trace_tables = [Path(folder) for folder in snakemake.input.trace_tables]
    traces = dict(zip((folder.name for folder in trace_tables), map(Path, snakemake.input.traces), strict=True))
    if not study["missing"]:  # recorded before anybody can see a verdict
        write_json(results / JUDGED, {"looks": study["looks"]})
    tables = {**inventory_tables(recordings, traces, trace_tables), **study_tables(recordings, study)}
    for path in snakemake.output.tables:
        io.write(tables[Path(path).stem], path, Path(path).stem)
    with whole_folder(Path(snakemake.output.dataset)) as folder:
        datasets.write_datasets(results, folder)
