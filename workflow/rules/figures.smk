rule loop_figures:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        steady_state=layout.path("tables/RECORDING/steady_state.parquet"),
    output:
        **layout.figures("RECORDING", "loop", report),
    log:
        layout.path("logs/loop_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("loop"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


rule soak_figures:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        latency_bins=layout.path("tables/RECORDING/latency_bins.parquet"),
        drives=layout.path("tables/drives.parquet"),
    output:
        **layout.figures("RECORDING", "soak", report),
    log:
        layout.path("logs/soak_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("soak"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


rule replay_figures:
    input:
        **layout.replay_tables(),
    output:
        **layout.figures("RECORDING", "replay", report),
    log:
        layout.path("logs/replay_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("replay"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


rule phase_figures:
    input:
        replays=layout.path("tables/RECORDING/replays.parquet"),
        replay_passes=layout.path("tables/RECORDING/replay_passes.parquet"),
    output:
        **layout.figures("RECORDING", "phases", report),
    log:
        layout.path("logs/phase_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("phases"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


rule comparison_figures:
    input:
        deltas=layout.path("tables/deltas.parquet"),
        summary=layout.path("tables/summary.parquet"),
    output:
        **layout.figures("comparison/{measurement}", "comparison", report),
    log:
        layout.path("logs/comparison_figures/{measurement}.log"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


rule trace_figures:
    input:
        **layout.trace_tables(),
    output:
        **layout.figures("traces/{trace}", "trace", report),
    log:
        layout.path("logs/trace_figures/{trace}.log"),
    wildcard_constraints:
        trace=layout.trace_names(),
    params:
        code=code_digest("figures.trace_sheet"),
    script:
        "../../scripts/trace_figures.py"
