REPORTED = digest(
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
)


rule report:
    """Write the report, a page for the browser."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        cells=expand("<results>/tables/{recording}/cells.parquet", recording=layout.recordings),
        steady_state=expand("<results>/tables/{recording}/steady_state.parquet", recording=layout.recordings),
        replays=expand("<results>/tables/{recording}/replays.parquet", recording=layout.recordings),
        replay_passes=expand("<results>/tables/{recording}/replay_passes.parquet", recording=layout.recordings),
        replay_operations=expand("<results>/tables/{recording}/replay_operations.parquet", recording=layout.recordings),
        replay_streams=expand("<results>/tables/{recording}/replay_streams.parquet", recording=layout.recordings),
        replay_mappings=expand("<results>/tables/{recording}/replay_mappings.parquet", recording=layout.recordings),
        application_runs=expand("<results>/tables/{recording}/application_runs.parquet", recording=layout.recordings),
        load_rates=expand("<results>/tables/{recording}/load_rates.parquet", recording=layout.recordings),
        latency_bins=expand("<results>/tables/{recording}/latency_bins.parquet", recording=layout.with_kind("nines")),
        findings=expand("<results>/tables/{recording}/findings.parquet", recording=layout.recordings),
        saturation=expand("<results>/tables/{recording}/saturation.parquet", recording=layout.recordings),
        exclusions="<results>/tables/exclusions.parquet",
        conditions="<results>/tables/conditions.parquet",
        differences="<results>/tables/differences.parquet",
        summary="<results>/tables/summary.parquet",
        deltas="<results>/tables/deltas.parquet",
        model_deltas="<results>/tables/model_deltas.parquet",
        variation="<results>/tables/variation.parquet",
        drives="<results>/tables/drives.parquet",
        hosts="<results>/tables/hosts.parquet",
        traces="<results>/tables/traces.parquet",
        figures=layout.all_figures(),
        every_table=layout.tables(),
    output:
        report("<results>/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        "<results>/logs/report.log",
    benchmark:
        "<results>/logs/benchmarks/report.tsv"
    params:
        code=REPORTED,
        study=layout.report_facts(),
    script:
        "../../scripts/report.py"


rule report_pdf:
    """Write the printable test pages, from the same files."""
    input:
        **{name: paths for name, paths in rules.report.input.items() if name != "every_table"},
    output:
        report("<results>/report/pts-pages.pdf", caption="../report/pts-pages.rst", category="Report"),
    log:
        "<results>/logs/report_pdf.log",
    benchmark:
        "<results>/logs/benchmarks/report_pdf.tsv"
    params:
        code=REPORTED,
        study=layout.report_facts(),
    script:
        "../../scripts/report_pdf.py"
