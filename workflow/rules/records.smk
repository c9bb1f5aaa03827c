import snakemake.workflow as of_snakemake

from drivelab.snakemake_records import Records
from drivelab.snakemake_report import escape_texts
from drivelab.stages.locks import place

Records.locks = place(layout.campaign.study.results)
of_snakemake.FilePersistence = Records

escape_texts()
