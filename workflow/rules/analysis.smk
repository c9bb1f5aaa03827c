rule steady_state:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
    output:
        windows=layout.path("tables/RECORDING/steady_state.parquet"),
    params:
        code=code_digest("analysis.windows"),
        steps=lambda wildcards: layout.planned(wildcards).plan.subject["measure"],
    log:
        layout.path("logs/steady_state/RECORDING.log"),
    script:
        "../../scripts/steady_state.py"


rule summary:
    input:
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        steady_state=layout.of_every_recording("tables/RECORDING/steady_state.parquet"),
        replays=layout.of_every_recording("tables/RECORDING/replays.parquet"),
    output:
        summary=layout.path("tables/summary.parquet"),
    params:
        code=code_digest("analysis.summary"),
        rse_threshold_pct=layout.campaign.study.rse_threshold_pct,
    log:
        layout.path("logs/summary.log"),
    script:
        "../../scripts/summary.py"


rule deltas:
    input:
        summary=layout.path("tables/summary.parquet"),
    output:
        deltas=layout.path("tables/deltas.parquet"),
    params:
        code=code_digest("analysis.deltas"),
        basis=layout.campaign.study.basis,
    log:
        layout.path("logs/deltas.log"),
    script:
        "../../scripts/deltas.py"
