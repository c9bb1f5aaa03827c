DRAWING = (
    "figures.py comparison_figures.py trace_figures.py "
    "analysis.exclusions analysis.values analysis.verdict collect figures trace virtual.effects"
)
DRAWN = facts.of("figures", {"png": png}, DRAWING)
COMPARED = facts.of(
    "comparisons", {"png": png, "basis": layout.campaign.study.basis, "recordings": layout.comparisons}, DRAWING
)
CAPTIONS = {name: kind.caption for name, kind in {**FIGURES, **TRACE_FIGURES}.items()}


rule figures:
    """Draw the figures of a drive's recordings of one measurement."""
    input:
        tables="<results>/tables/{drive}/{measurement}/made.json",
        facts=DRAWN,
    output:
        report(
            directory("<results>/figures/{drive}/{measurement}"),
            patterns=["{run}/{figure}.svg"],
            category="Figures",
            subcategory="{measurement}",
            labels={"drive": "{drive}", "run": "{run}", "figure": "{figure}"},
            caption="../report/figures.rst",
        ),
    log:
        "<results>/logs/figures/{drive}/{measurement}.log",
    benchmark:
        "<results>/logs/benchmarks/figures/{drive}/{measurement}.tsv"
    params:
        runs=layout.keys,
        captions=CAPTIONS,
    script:
        "../../scripts/figures.py"


rule comparison_figures:
    """Draw the figures that compare the drives, or the block sizes, of one measurement."""
    input:
        tables=lambda wildcards: expand(
            "<results>/tables/{series}/made.json", series=layout.compared_series(wildcards.measurement)
        ),
        of_study=expand(
            "<results>/tables/{table}.parquet", table=["deltas", "drives", "exclusions", "summary", "variation"]
        ),
        facts=COMPARED,
    output:
        report(
            directory("<results>/figures/comparison/{measurement}"),
            patterns=["{figure}.svg"],
            category="Figures",
            subcategory="{measurement}",
            labels={"drive": "all", "run": "all", "figure": "{figure}"},
            caption="../report/figures.rst",
        ),
    log:
        "<results>/logs/comparison_figures/{measurement}.log",
    benchmark:
        "<results>/logs/benchmarks/comparison_figures/{measurement}.tsv"
    params:
        captions=CAPTIONS,
    script:
        "../../scripts/comparison_figures.py"


rule trace_figures:
    """Draw the figures of a trace."""
    input:
        tables="<results>/tables/traces/{trace}",
        facts=DRAWN,
    output:
        report(
            directory("<results>/figures/traces/{trace}"),
            patterns=["{figure}.svg"],
            category="Figures",
            subcategory="{trace}",
            labels={"trace": "{trace}", "figure": "{figure}"},
            caption="../report/figures.rst",
        ),
    log:
        "<results>/logs/trace_figures/{trace}.log",
    benchmark:
        "<results>/logs/benchmarks/trace_figures/{trace}.tsv"
    params:
        captions=CAPTIONS,
    script:
        "../../scripts/trace_figures.py"
