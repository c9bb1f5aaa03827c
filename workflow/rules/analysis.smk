rule steady_state:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
    output:
        windows=layout.path("tables/RECORDING/steady_state.parquet"),
    log:
        layout.path("logs/steady_state/RECORDING.log"),
    params:
        code=code_digest("steady_state.py"),
        steps=lambda wildcards: layout.planned(wildcards).plan.subject["measure"],
    script:
        "../../scripts/steady_state.py"


rule exclusions:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        replays=layout.of_every_recording("tables/RECORDING/replays.parquet"),
        application_runs=layout.of_every_recording("tables/RECORDING/application_runs.parquet"),
    output:
        exclusions=layout.path("tables/exclusions.parquet"),
    log:
        layout.path("logs/exclusions.log"),
    params:
        code=code_digest("exclusions.py"),
        others=layout.other_folders(),
        drives=list(layout.campaign.study.subjects),
        measurements=layout.measurements(),
    script:
        "../../scripts/exclusions.py"


rule summary:
    input:
        exclusions=layout.path("tables/exclusions.parquet"),
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        latency_bins=layout.of_every_recording("tables/RECORDING/latency_bins.parquet"),
        steady_state=layout.of_every_recording("tables/RECORDING/steady_state.parquet"),
        replays=layout.of_every_recording("tables/RECORDING/replays.parquet"),
        replay_passes=layout.of_every_recording("tables/RECORDING/replay_passes.parquet"),
        application_runs=layout.of_every_recording("tables/RECORDING/application_runs.parquet"),
    output:
        summary=layout.path("tables/summary.parquet"),
    log:
        layout.path("logs/summary.log"),
    params:
        code=code_digest("summary.py"),
        scores=layout.scores(),
        rse_threshold_pct=layout.campaign.study.rse_threshold_pct,
    script:
        "../../scripts/summary.py"


rule differences:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        exclusions=layout.path("tables/exclusions.parquet"),
    output:
        conditions=layout.path("tables/conditions.parquet"),
        differences=layout.path("tables/differences.parquet"),
    log:
        layout.path("logs/differences.log"),
    params:
        code=code_digest("differences.py"),
        altered=layout.altered(),
        pairs=layout.compared_pairs(),
        intended=layout.campaign.study.intended,
    script:
        "../../scripts/differences.py"


rule deltas:
    input:
        summary=layout.path("tables/summary.parquet"),
        differences=layout.path("tables/differences.parquet"),
    output:
        deltas=layout.path("tables/deltas.parquet"),
    log:
        layout.path("logs/deltas.log"),
    params:
        code=code_digest("deltas.py"),
        basis=layout.campaign.study.basis,
        basis_is_there=layout.campaign.basis_is_there,
        comparison=layout.comparison(),
    script:
        "../../scripts/deltas.py"


rule findings:
    input:
        manifest=layout.path("recordings/RECORDING/recording.json"),
        cells=layout.path("tables/RECORDING/cells.parquet"),
        series=layout.path("tables/RECORDING/series.parquet"),
        telemetry=layout.path("tables/RECORDING/telemetry.parquet"),
        latency_bins=layout.path("tables/RECORDING/latency_bins.parquet"),
    output:
        findings=layout.path("tables/RECORDING/findings.parquet"),
        saturation=layout.path("tables/RECORDING/saturation.parquet"),
    log:
        layout.path("logs/findings/RECORDING.log"),
    params:
        code=code_digest("findings.py"),
    script:
        "../../scripts/findings.py"
