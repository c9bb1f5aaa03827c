"""What stands out in each recording, and where write saturation leads; one job for all, a fraction of a second each."""

from drivelab.analysis.detectors import findings_table
from drivelab.analysis.saturation_table import saturation_table
from drivelab.errors import reported
from drivelab.tables import io

NAMES = ("cells", "series", "telemetry", "latency_bins")

with reported(snakemake.log[0]):
    drives = io.read(snakemake.input.drives, "drives")
    capacities = dict(zip(drives["drive"], drives["capacity_bytes"].astype(int), strict=True))
    outputs = zip(snakemake.output.findings, snakemake.output.saturation, strict=True)
    for number, (findings, saturation) in enumerate(outputs):
        tables = {name: io.read(snakemake.input[name][number], name) for name in NAMES}
        io.write(findings_table(tables), findings, "findings")
        io.write(saturation_table(tables["cells"], capacities), saturation, "saturation")
