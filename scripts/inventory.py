"""Write the tables of a study's drives, hosts and traces."""

from pathlib import Path

from drivelab.collect import inventory
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    io.write(inventory.drives(recordings), snakemake.output.drives, "drives")
    io.write(inventory.hosts(recordings), snakemake.output.hosts, "hosts")
    traces = dict(zip(snakemake.params.traces, map(Path, snakemake.input.traces), strict=True))
    inventory.check_traces(recordings, traces)
    names = ("trace_overview", "trace_operations")
    counted = ([io.read(path, name) for path in snakemake.input[name]] for name in names)
    io.write(inventory.traces(*counted), snakemake.output.traces, "traces")
