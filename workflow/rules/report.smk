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
            "report.py analysis collect drives figures fio host replay report trace virtual",
        ),
    output:
        report("<results>/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        "<results>/logs/report.log",
    benchmark:
        "<results>/logs/benchmarks/report.tsv"
    script:
        "../../scripts/report.py"
