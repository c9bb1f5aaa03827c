from drivelab.stages.figure_kinds import figure_modules

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
            code=code_digest(*figure_modules(kinds)),
        script:
            "../../scripts/figures.py"


# So have measurements of several drives: one job draws all that compares them.
for number, kinds in enumerate(sorted(set(layout.over_drives().values())), start=1):

    rule:
        name:
            f"comparison_figures_{number}"
        input:
            **layout.tables_over_drives(kinds),
        output:
            **layout.figures("comparison/{measurement}", kinds, report),
        log:
            layout.path("logs/comparison_figures/{measurement}.log"),
        wildcard_constraints:
            measurement=layout.measurements_with(kinds),
        params:
            code=code_digest("analysis.exclusions", *figure_modules(kinds)),
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
        code=code_digest(*figure_modules(["trace"])),
    script:
        "../../scripts/trace_figures.py"
