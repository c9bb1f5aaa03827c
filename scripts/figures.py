"""The figures of one measurement, or of the comparison of the drives in one."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.figures.sheets import draw
from drivelab.tables import io

with reported(snakemake.log[0]):
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    measurement = snakemake.wildcards.measurement
    tables |= {name: t[t["measurement"] == measurement] for name, t in tables.items() if name in ("deltas", "summary")}
    stems = {Path(path).stem: Path(path).with_suffix("") for path in snakemake.output}
    subject = f"{snakemake.wildcards.get('drive', 'all drives')}, {measurement}"
    draw(stems, tables, subject, png=any(path.endswith(".png") for path in snakemake.output))
