# A recording has the figures that its plan leads to, all drawn by one job: a rule for each combination there is.
for number, kinds in enumerate(layout.figure_sets(), start=1):

    rule:
        name:
            f"figures_{number}"
        input:
            **layout.figure_tables(kinds),
        output:
            **layout.figures("RECORDING", kinds, report),
        log:
            layout.path("logs/figures/RECORDING.log"),
        wildcard_constraints:
            **layout.with_figures(kinds),
        params:
            code=code_digest("figures.sheets"),
        script:
            "../../scripts/figures.py"


rule comparison_figures:
    input:
        deltas=layout.path("tables/deltas.parquet"),
        summary=layout.path("tables/summary.parquet"),
    output:
        **layout.figures("comparison/{measurement}", ["comparison"], report),
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
        **layout.figures("comparison/{measurement}", ["head_to_head"], report),
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
        **layout.figures("traces/{trace}", ["trace"], report),
    log:
        layout.path("logs/trace_figures/{trace}.log"),
    wildcard_constraints:
        trace=layout.trace_names(),
    params:
        code=code_digest("figures.trace_sheet"),
    script:
        "../../scripts/trace_figures.py"
