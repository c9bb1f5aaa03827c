rule steady_figures:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        steady_state=layout.path("tables/RECORDING/steady_state.parquet"),
    output:
        **layout.figures("RECORDING", "steady", report),
    log:
        layout.path("logs/steady_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("steady"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


use rule steady_figures as grid_figures with:
    output:
        **layout.figures("RECORDING", "grid", report),
    log:
        layout.path("logs/grid_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("grid"),


use rule steady_figures as surface_figures with:
    output:
        **layout.figures("RECORDING", "surface", report),
    log:
        layout.path("logs/surface_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("surface"),


use rule steady_figures as repeats_figures with:
    output:
        **layout.figures("RECORDING", "repeats", report),
    log:
        layout.path("logs/repeats_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("repeats"),


use rule steady_figures as demand_figures with:
    output:
        **layout.figures("RECORDING", "demand", report),
    log:
        layout.path("logs/demand_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("demand"),


rule soak_figures:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
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


use rule soak_figures as idle_recovery_figures with:
    output:
        **layout.figures("RECORDING", "idle_recovery", report),
    log:
        layout.path("logs/idle_recovery_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("idle_recovery"),


use rule soak_figures as stimulus_figures with:
    output:
        **layout.figures("RECORDING", "stimulus", report),
    log:
        layout.path("logs/stimulus_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("stimulus"),


use rule soak_figures as volume_figures with:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        drives=layout.path("tables/drives.parquet"),
    output:
        **layout.figures("RECORDING", "volume", report),
    log:
        layout.path("logs/volume_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("volume"),


rule histogram_figures:
    input:
        cells=layout.path("tables/RECORDING/cells.parquet"),
        latency_bins=layout.path("tables/RECORDING/latency_bins.parquet"),
    output:
        **layout.figures("RECORDING", "histogram", report),
    log:
        layout.path("logs/histogram_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("histogram"),
    params:
        code=code_digest("figures.sheets"),
    script:
        "../../scripts/figures.py"


use rule histogram_figures as nines_figures with:
    output:
        **layout.figures("RECORDING", "nines", report),
    log:
        layout.path("logs/nines_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("nines"),


use rule histogram_figures as turns_figures with:
    output:
        **layout.figures("RECORDING", "turns", report),
    log:
        layout.path("logs/turns_figures/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.measurements("turns"),


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


rule head_to_head_figures:
    input:
        series=lambda wildcards: layout.of_measurement("tables/RECORDING/series.parquet", wildcards.measurement),
        cells=lambda wildcards: layout.of_measurement("tables/RECORDING/cells.parquet", wildcards.measurement),
    output:
        **layout.figures("comparison/{measurement}", "head_to_head", report),
    log:
        layout.path("logs/head_to_head_figures/{measurement}.log"),
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
