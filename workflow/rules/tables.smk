rule tables:
    """Read the evidence of a recording into tables, and find its steady-state windows, anomalies and phases."""
    input:
        manifest="<results>/recordings/{drive}/{measurement}/{key}/recording.json",
    output:
        **layout.replay_tables(),
        cells="<results>/tables/{drive}/{measurement}/{key}/cells.parquet",
        latency_bins="<results>/tables/{drive}/{measurement}/{key}/latency_bins.parquet",
        series="<results>/tables/{drive}/{measurement}/{key}/series.parquet",
        application_runs="<results>/tables/{drive}/{measurement}/{key}/application_runs.parquet",
        load_rates="<results>/tables/{drive}/{measurement}/{key}/load_rates.parquet",
        telemetry="<results>/tables/{drive}/{measurement}/{key}/telemetry.parquet",
        steady_state="<results>/tables/{drive}/{measurement}/{key}/steady_state.parquet",
        findings="<results>/tables/{drive}/{measurement}/{key}/findings.parquet",
        saturation="<results>/tables/{drive}/{measurement}/{key}/saturation.parquet",
    log:
        "<results>/logs/tables/{drive}/{measurement}/{key}.log",
    benchmark:
        "<results>/logs/benchmarks/tables/{drive}/{measurement}/{key}.tsv"
    params:
        code=digest(
            "tables.py",
            "analysis.detectors",
            "analysis.values",
            "collect",
            "drives",
            "fio",
            "native",
            "replay",
            "telemetry",
            "trace",
        ),
        reduced=lambda wildcards: bool(layout.planned(wildcards).altered),
        limits=layout.taint_limits(),
    script:
        "../../scripts/tables.py"


rule inventory:
    """List the drives, hosts and traces of the study."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        traces=list(layout.traces().values()),
        trace_overview=expand("<results>/tables/traces/{trace}/trace_overview.parquet", trace=layout.traces()),
        trace_operations=expand("<results>/tables/traces/{trace}/trace_operations.parquet", trace=layout.traces()),
    output:
        drives="<results>/tables/drives.parquet",
        hosts="<results>/tables/hosts.parquet",
        traces="<results>/tables/traces.parquet",
    log:
        "<results>/logs/inventory.log",
    benchmark:
        "<results>/logs/benchmarks/inventory.tsv"
    params:
        code=digest("inventory.py", "collect", "trace"),
        traces=list(layout.traces()),
    script:
        "../../scripts/inventory.py"
