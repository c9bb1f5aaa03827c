rule tables:
    input:
        manifest=layout.path("recordings/RECORDING/recording.json"),
    output:
        **layout.replay_tables(),
        cells=layout.path("tables/RECORDING/cells.parquet"),
        latency_bins=layout.path("tables/RECORDING/latency_bins.parquet"),
        series=layout.path("tables/RECORDING/series.parquet"),
        application_runs=layout.path("tables/RECORDING/application_runs.parquet"),
        telemetry=layout.path("tables/RECORDING/telemetry.parquet"),
    log:
        layout.path("logs/tables/RECORDING.log"),
    params:
        code=code_digest("tables.py"),
        reduced=lambda wildcards: bool(layout.planned(wildcards).altered),
        limits=layout.taint_limits(),
    script:
        "../../scripts/tables.py"


rule inventory:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        traces=list(layout.traces().values()),
        trace_overview=layout.of_every_trace("trace_overview"),
        trace_operations=layout.of_every_trace("trace_operations"),
    output:
        drives=layout.path("tables/drives.parquet"),
        hosts=layout.path("tables/hosts.parquet"),
        traces=layout.path("tables/traces.parquet"),
    log:
        layout.path("logs/inventory.log"),
    params:
        code=code_digest("inventory.py"),
        traces=list(layout.traces()),
    script:
        "../../scripts/inventory.py"
