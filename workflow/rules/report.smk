rule report:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        steady_state=layout.of_every_recording("tables/RECORDING/steady_state.parquet"),
        replays=layout.of_every_recording("tables/RECORDING/replays.parquet"),
        replay_passes=layout.of_every_recording("tables/RECORDING/replay_passes.parquet"),
        replay_operations=layout.of_every_recording("tables/RECORDING/replay_operations.parquet"),
        replay_streams=layout.of_every_recording("tables/RECORDING/replay_streams.parquet"),
        replay_mappings=layout.of_every_recording("tables/RECORDING/replay_mappings.parquet"),
        application_runs=layout.of_every_recording("tables/RECORDING/application_runs.parquet"),
        latency_bins=layout.of_every_recording("tables/RECORDING/latency_bins.parquet", "nines"),
        summary=layout.path("tables/summary.parquet"),
        deltas=layout.path("tables/deltas.parquet"),
        drives=layout.path("tables/drives.parquet"),
        hosts=layout.path("tables/hosts.parquet"),
        traces=layout.path("tables/traces.parquet"),
        figures=layout.all_figures(),
    output:
        report(layout.path("report/index.html"), caption="../report/report.rst", category="Report"),
    log:
        layout.path("logs/report.log"),
    params:
        code=code_digest("report.study"),
        templates=files_digest("scripts/drivelab/report/templates/*", "workflow/report/*.rst"),
        study=layout.report_facts(),
    script:
        "../../scripts/report.py"
