"""The figures of one measurement, or of the comparison of the drives in one."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.figures import kept, sheets
from drivelab.tables import io

with reported(snakemake.log[0]):
    files = [Path(path) for path in snakemake.output]
    made_from = kept.origins(snakemake.params.code, dict(snakemake.input.items()), sheets.tables_of)
    stems = kept.not_right(files, made_from)
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    measurement = snakemake.wildcards.measurement
    tables |= {name: t[t["measurement"] == measurement] for name, t in tables.items() if name in ("deltas", "summary")}
    subject = f"{snakemake.wildcards.get('drive', 'all drives')}, {measurement}"
    sheets.draw(stems, tables, subject, png=any(one.suffix == ".png" for one in files), made_from=made_from)
