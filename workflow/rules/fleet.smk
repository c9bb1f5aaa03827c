# A large study: one job per drive, which runs the whole workflow for that drive, and rules that join the drives.
rule drive:
    output:
        outcome=fleet.path("drives/{drive}/outcome.{turn}.json"),
    log:
        fleet.path("logs/drives/{drive}.{turn}.log"),
    wildcard_constraints:
        turn="[0-9]+",
    priority: fleet.priority
    threads: scheduling.part_cores(workflow.cores)
    resources:
        **fleet.resources(scheduling),
    params:
        study=str(fleet.campaign.study.path),
        stamp=lambda wildcards: fleet.stamps[wildcards.drive],
        png="yes" if png else "no",
    shell:
        "{STAGE} part {params.study:q} {wildcards.drive:q} --stamp {params.stamp} --cores {threads} "
        "--config png={params.png} -o {output.outcome:q} > {log:q} 2>&1"


rule fleet_tables:
    input:
        outcomes=fleet.outcomes(),
    output:
        fleet_drives=fleet.path("tables/fleet_drives.parquet"),
        fleet_spread=fleet.path("tables/fleet_spread.parquet"),
        fleet_deviations=fleet.path("tables/fleet_deviations.parquet"),
        fleet_hosts=fleet.path("tables/fleet_hosts.parquet"),
    log:
        fleet.path("logs/fleet_tables.log"),
    params:
        code=code_digest("tables.fleet"),
        margin_pct=fleet.campaign.study.margin_pct,
    script:
        "../../scripts/fleet_tables.py"


rule fleet_deltas:
    input:
        outcomes=fleet.outcomes(),
    output:
        deltas=fleet.path("tables/deltas/drives.txt"),
    log:
        fleet.path("logs/fleet_deltas.log"),
    params:
        code=code_digest("tables.fleet"),
        study=fleet.report_facts(),
    script:
        "../../scripts/fleet_deltas.py"


rule fleet_report:
    input:
        outcomes=fleet.outcomes(),
        fleet_drives=fleet.path("tables/fleet_drives.parquet"),
        fleet_spread=fleet.path("tables/fleet_spread.parquet"),
        fleet_deviations=fleet.path("tables/fleet_deviations.parquet"),
        fleet_hosts=fleet.path("tables/fleet_hosts.parquet"),
        deltas=fleet.path("tables/deltas/drives.txt"),
    output:
        report(fleet.path("report/index.html"), caption="../report/report.rst", category="Report"),
    log:
        fleet.path("logs/fleet_report.log"),
    params:
        code=code_digest("report.fleet"),
        templates=files_digest(
            *(f"scripts/drivelab/report/templates/{name}*" for name in ("fleet.", "parts.", "report."))
        ),
        study=fleet.report_facts(),
    script:
        "../../scripts/fleet_report.py"


# The last rule: it fails if a drive failed, after all other drives are measured, joined and reported.
rule fleet_complete:
    input:
        outcomes=fleet.outcomes(),
        report=fleet.path("report/index.html"),
    output:
        complete=fleet.path("complete.txt"),
    log:
        fleet.path("logs/fleet_complete.log"),
    script:
        "../../scripts/fleet_complete.py"
