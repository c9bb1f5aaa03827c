rule report:
    """Write the report, a page for the browser."""
    input:
        tables=expand("<results>/tables/{series}/made.json", series=layout.series),
        of_study=expand("<results>/tables/{table}.parquet", table=STUDY_TABLES),
        trace_tables=expand("<results>/tables/traces/{trace}", trace=layout.traces()),
        figures=expand("<results>/figures/{series}", series=layout.series),
        comparisons=expand("<results>/figures/comparison/{name}", name=layout.comparisons),
        trace_figures=expand("<results>/figures/traces/{trace}", trace=layout.traces()),
        facts=facts.of(
            "report",
            layout.report_facts(),
            "report.py",
            "report_pdf.py",
            "analysis",
            "collect",
            "drives",
            "figures",
            "host",
            "replay",
            "report",
            "trace",
            "virtual",
        ),
    output:
        report("<results>/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        "<results>/logs/report.log",
    benchmark:
        "<results>/logs/benchmarks/report.tsv"
    script:
        "../../scripts/report.py"


rule report_pdf:
    """Write the printable test pages, from the same files."""
    input:
        **dict(rules.report.input.items()),
    output:
        report("<results>/report/pts-pages.pdf", caption="../report/pts-pages.rst", category="Report"),
    log:
        "<results>/logs/report_pdf.log",
    benchmark:
        "<results>/logs/benchmarks/report_pdf.tsv"
    script:
        "../../scripts/report_pdf.py"
