import snakemake.workflow as of_snakemake

from drivelab.snakemake_records import Records

of_snakemake.FilePersistence = Records
