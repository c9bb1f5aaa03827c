DRAWING = (
    "figures.py comparison_figures.py trace_figures.py "
    "analysis.exclusions analysis.values analysis.verdict collect figures fio trace virtual.effects"
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
        pictures("<results>/figures/{drive}/{measurement}", "{run}/{figure}.svg", drive="{drive}", run="{run}"),
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
        tables=expand("<results>/tables/{series}/made.json", series=layout.compared_series),
        of_study=expand("<results>/tables/{table}.parquet", table=OF_THE_STUDY),
        facts=COMPARED,
    output:
        pictures("<results>/figures/comparison/{measurement}", "{figure}.svg", drive="all", run="all"),
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
        pictures("<results>/figures/traces/{trace}", "{figure}.svg", trace="{trace}"),
    log:
        "<results>/logs/trace_figures/{trace}.log",
    benchmark:
        "<results>/logs/benchmarks/trace_figures/{trace}.tsv"
    params:
        captions=CAPTIONS,
    script:
        "../../scripts/trace_figures.py"
