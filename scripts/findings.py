"""Detect anomalies in one recording, and compute its write saturation."""

from pathlib import Path

from drivelab.analysis.detectors import findings_table
from drivelab.analysis.values.saturation_table import saturation_table
from drivelab.collect import inventory
from drivelab.core.errors import reported
from drivelab.tables import io

NAMES = ("cells", "series", "telemetry", "latency_bins")

with reported(snakemake.log[0]):
    drive = inventory.drives([Path(snakemake.input.manifest).parent])
    capacities = dict(zip(drive["drive"], drive["capacity_bytes"].astype(int), strict=True))
    tables = {name: io.read(snakemake.input[name], name) for name in NAMES}
    io.write(findings_table(tables), snakemake.output.findings, "findings")
    io.write(saturation_table(tables["cells"], capacities), snakemake.output.saturation, "saturation")
