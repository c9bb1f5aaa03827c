"""Write the tables of trace statistics."""

from pathlib import Path

from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.tables import io
from drivelab.trace.statistics.count import count

with reported(snakemake.log[0]), whole_folder(Path(snakemake.output[0])) as folder:
    for name, table in count(Path(snakemake.input.trace), snakemake.wildcards.trace).items():
        io.write(table, folder / f"{name}.parquet", name)
