from drivelab.workflow.figure_kinds import OVER_SIZES

DRAWN = digest(
    "figures.py", "trace_figures.py", "analysis.exclusions", "analysis.values", "analysis.verdict", "figures"
)

# One job draws all figures of a recording; there is a rule for each combination of figures that the plans need.
for number, kinds in enumerate(layout.figure_sets(), start=1):

    rule:
        name:
            f"figures_{number}"
        input:
            **layout.figure_tables(kinds),
        output:
            **layout.figures("RECORDING", kinds, report),
        log:
            "<results>/logs/figures/{drive}/{measurement}/{key}.log",
        benchmark:
            "<results>/logs/benchmarks/figures/{drive}/{measurement}/{key}.tsv"
        wildcard_constraints:
            **layout.with_figures(kinds),
        params:
            code=DRAWN,
        script:
            "../../scripts/figures.py"


# One job draws all comparison figures of a measurement with several drives.
for number, kinds in enumerate(sorted(set(layout.over_drives.values())), start=1):

    rule:
        name:
            f"comparison_figures_{number}"
        input:
            **layout.tables_over_drives(kinds),
        output:
            **layout.figures("comparison/{measurement}", kinds, report),
        log:
            "<results>/logs/comparison_figures/{measurement}.log",
        benchmark:
            "<results>/logs/benchmarks/comparison_figures/{measurement}.tsv"
        wildcard_constraints:
            measurement=layout.measurements_with(kinds),
        params:
            code=DRAWN,
        script:
            "../../scripts/figures.py"


rule size_figures:
    """Draw the figures over block size, with all drives: measurements of one protocol share them."""
    input:
        **layout.tables_over_sizes(),
    output:
        **layout.figures("comparison/{measurement}", OVER_SIZES, report),
    log:
        "<results>/logs/comparison_figures/{measurement}.log",
    benchmark:
        "<results>/logs/benchmarks/comparison_figures/{measurement}.tsv"
    wildcard_constraints:
        measurement=layout.names_by_size(),
    params:
        code=DRAWN,
    script:
        "../../scripts/figures.py"


rule trace_figures:
    """Draw the figures of a trace."""
    input:
        **layout.trace_tables(),
    output:
        **layout.figures("traces/{trace}", ["trace"], report),
    log:
        "<results>/logs/trace_figures/{trace}.log",
    benchmark:
        "<results>/logs/benchmarks/trace_figures/{trace}.tsv"
    wildcard_constraints:
        trace=layout.trace_names(),
    params:
        code=DRAWN,
    script:
        "../../scripts/trace_figures.py"
