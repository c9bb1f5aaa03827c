"""Draw the figures of one recording, or the comparison figures of one measurement."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.figures.base import sheets
from drivelab.tables import io

with reported(snakemake.log[0]):
    files = [Path(path) for path in snakemake.output]
    stems = {path.stem: path.with_suffix("") for path in files}
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    measurement = snakemake.wildcards.measurement
    of_study = ("deltas", "summary", "variation")
    tables |= {name: t[t["measurement"] == measurement] for name, t in tables.items() if name in of_study}
    subject = f"{snakemake.wildcards.get('drive', 'all drives')}, {measurement}"
    sheets.draw(stems, tables, subject, png=any(file.suffix == ".png" for file in files))
