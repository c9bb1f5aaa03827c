from drivelab.stages.figure_kinds import OVER_SIZES, figure_code

# A recording has the figures that its plan leads to, all drawn by one job: a rule for each combination there is. What
# is right already is kept, so the files are there while a job runs (update).
for number, kinds in enumerate(layout.figure_sets(), start=1):

    rule:
        name:
            f"figures_{number}"
        input:
            **layout.figure_tables(kinds),
        output:
            **layout.figures("RECORDING", kinds, update, report),
        log:
            layout.path("logs/figures/RECORDING.log"),
        wildcard_constraints:
            **layout.with_figures(kinds),
        params:
            code=figure_code(kinds),
        script:
            "../../scripts/figures.py"


# So have measurements of several drives: one job draws all that compares them.
for number, kinds in enumerate(sorted(set(layout.over_drives.values())), start=1):

    rule:
        name:
            f"comparison_figures_{number}"
        input:
            **layout.tables_over_drives(kinds),
        output:
            **layout.figures("comparison/{measurement}", kinds, update, report),
        log:
            layout.path("logs/comparison_figures/{measurement}.log"),
        wildcard_constraints:
            measurement=layout.measurements_with(kinds),
        params:
            code=figure_code(kinds),
        script:
            "../../scripts/figures.py"


# Measurements of one protocol that differ in their block size have a figure over all of them, with all drives.
rule size_figures:
    input:
        **layout.tables_over_sizes(),
    output:
        **layout.figures("comparison/{measurement}", OVER_SIZES, update, report),
    log:
        layout.path("logs/comparison_figures/{measurement}.log"),
    wildcard_constraints:
        measurement=layout.names_by_size(),
    params:
        code=figure_code(OVER_SIZES),
    script:
        "../../scripts/figures.py"


rule trace_figures:
    input:
        **layout.trace_tables(),
    output:
        **layout.figures("traces/{trace}", ["trace"], update, report),
    log:
        layout.path("logs/trace_figures/{trace}.log"),
    wildcard_constraints:
        trace=layout.trace_names(),
    params:
        code=figure_code(["trace"]),
    script:
        "../../scripts/trace_figures.py"
