rule drive:
    """Run the whole workflow for one drive of a large study. The other rules join the drives."""
    output:
        outcome="<results>/drives/{drive}/outcome.{turn}.json",
    log:
        "<results>/logs/drives/{drive}.{turn}.log",
    wildcard_constraints:
        turn="[0-9]+",
    priority: fleet.priority
    threads: scheduling.part_cores(workflow.cores)
    resources:
        **fleet.resources(scheduling),
    params:
        study=str(fleet.campaign.study.path),
        stamp=lambda wildcards: fleet.stamps[wildcards.drive],
        png="yes" if layout.png else "no",
    shell:
        "drivelab part {params.study:q} {wildcards.drive:q} --stamp {params.stamp} --cores {threads} "
        "--config png={params.png} -o {output.outcome:q} > {log:q} 2>&1"


rule fleet_tables:
    """Join the drives in tables of the fleet."""
    input:
        outcomes=fleet.outcomes(),
    output:
        fleet_drives="<results>/tables/fleet_drives.parquet",
        fleet_spread="<results>/tables/fleet_spread.parquet",
        fleet_deviations="<results>/tables/fleet_deviations.parquet",
        fleet_hosts="<results>/tables/fleet_hosts.parquet",
    log:
        "<results>/logs/fleet_tables.log",
    benchmark:
        "<results>/logs/benchmarks/fleet_tables.tsv"
    params:
        code=digest("analysis", "report"),
        margin_pct=fleet.campaign.study.margin_pct,
    script:
        "../../scripts/fleet_tables.py"


rule fleet_deltas:
    """Compare each drive with the basis, and each model with the basis's."""
    input:
        outcomes=fleet.outcomes(),
    output:
        deltas="<results>/tables/deltas/drives.txt",
        models="<results>/tables/model_deltas.parquet",
    log:
        "<results>/logs/fleet_deltas.log",
    benchmark:
        "<results>/logs/benchmarks/fleet_deltas.tsv"
    params:
        code=digest("analysis", "report"),
        study=fleet.report_facts(),
    script:
        "../../scripts/fleet_deltas.py"


rule fleet_report:
    """Write the report of the fleet."""
    input:
        outcomes=fleet.outcomes(),
        fleet_drives="<results>/tables/fleet_drives.parquet",
        fleet_spread="<results>/tables/fleet_spread.parquet",
        fleet_deviations="<results>/tables/fleet_deviations.parquet",
        fleet_hosts="<results>/tables/fleet_hosts.parquet",
        deltas="<results>/tables/deltas/drives.txt",
        models="<results>/tables/model_deltas.parquet",
    output:
        report("<results>/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        "<results>/logs/fleet_report.log",
    benchmark:
        "<results>/logs/benchmarks/fleet_report.tsv"
    params:
        code=digest("analysis", "report"),
        study=fleet.report_facts(),
    script:
        "../../scripts/fleet_report.py"


rule fleet_complete:
    """Fail if a drive failed, after all other drives are measured, joined and reported."""
    input:
        outcomes=fleet.outcomes(),
        report="<results>/report/index.html",
    output:
        complete="<results>/complete.txt",
    log:
        "<results>/logs/fleet_complete.log",
    script:
        "../../scripts/fleet_complete.py"
