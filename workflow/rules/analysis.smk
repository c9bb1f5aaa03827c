rule steady_state:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
    output:
        windows=layout.path("tables/RECORDING/steady_state.parquet"),
    log:
        layout.path("logs/steady_state/RECORDING.log"),
    params:
        code=code_digest("analysis.windows"),
        steps=lambda wildcards: layout.planned(wildcards).plan.subject["measure"],
    script:
        "../../scripts/steady_state.py"


rule summary:
    input:
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
        code=code_digest("analysis.summary"),
        scores=layout.scores(),
        rse_threshold_pct=layout.campaign.study.rse_threshold_pct,
    script:
        "../../scripts/summary.py"


rule deltas:
    input:
        summary=layout.path("tables/summary.parquet"),
    output:
        deltas=layout.path("tables/deltas.parquet"),
    log:
        layout.path("logs/deltas.log"),
    params:
        code=code_digest("analysis.deltas"),
        basis=layout.campaign.study.basis,
        basis_is_there=layout.campaign.basis_is_there,
    script:
        "../../scripts/deltas.py"
