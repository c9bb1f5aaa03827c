rule tables:
    input:
        manifest=layout.path("recordings/RECORDING/recording.json"),
    output:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        latency_bins=layout.path("tables/RECORDING/latency_bins.parquet"),
        series=layout.path("tables/RECORDING/series.parquet"),
        replays=layout.path("tables/RECORDING/replays.parquet"),
    params:
        code=code_digest("tables.collect"),
    log:
        layout.path("logs/tables/RECORDING.log"),
    script:
        "../../scripts/tables.py"


rule inventory:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        traces=list(layout.traces().values()),
    output:
        drives=layout.path("tables/drives.parquet"),
        hosts=layout.path("tables/hosts.parquet"),
        traces=layout.path("tables/traces.parquet"),
    params:
        code=code_digest("tables.inventory", "trace.characterise"),
        traces=list(layout.traces()),
    log:
        layout.path("logs/inventory.log"),
    script:
        "../../scripts/inventory.py"
