rule report:
    input:
        manifests=layout.of_every_recording("recordings/RECORDING/recording.json"),
        cells=layout.of_every_recording("tables/RECORDING/cells.parquet"),
        steady_state=layout.of_every_recording("tables/RECORDING/steady_state.parquet"),
        replays=layout.of_every_recording("tables/RECORDING/replays.parquet"),
        replay_passes=layout.of_every_recording("tables/RECORDING/replay_passes.parquet"),
        replay_operations=layout.of_every_recording("tables/RECORDING/replay_operations.parquet"),
        replay_streams=layout.of_every_recording("tables/RECORDING/replay_streams.parquet"),
        replay_mappings=layout.of_every_recording("tables/RECORDING/replay_mappings.parquet"),
        application_runs=layout.of_every_recording("tables/RECORDING/application_runs.parquet"),
        latency_bins=layout.of_every_recording("tables/RECORDING/latency_bins.parquet", "nines"),
        findings=layout.of_every_recording("tables/RECORDING/findings.parquet"),
        saturation=layout.of_every_recording("tables/RECORDING/saturation.parquet"),
        exclusions=layout.path("tables/exclusions.parquet"),
        conditions=layout.path("tables/conditions.parquet"),
        differences=layout.path("tables/differences.parquet"),
        summary=layout.path("tables/summary.parquet"),
        deltas=layout.path("tables/deltas.parquet"),
        drives=layout.path("tables/drives.parquet"),
        hosts=layout.path("tables/hosts.parquet"),
        traces=layout.path("tables/traces.parquet"),
        figures=layout.all_figures(),
        every_table=layout.tables(),
    output:
        report(layout.path("report/index.html"), caption="../report/report.rst", category="Report"),
    log:
        layout.path("logs/report.log"),
    params:
        code=code_digest("report.py"),
        templates=files_digest(
            *(f"scripts/drivelab/report/templates/{name}*" for name in ("report.", "parts.", "reading.", "charts.")),
        ),
        captions=layout.captions(),
        study=layout.report_facts(),
    script:
        "../../scripts/report.py"


# The printable test pages, from the same files.
rule report_pdf:
    input:
        **{name: paths for name, paths in rules.report.input.items() if name != "every_table"},
    output:
        report(layout.path("report/pts-pages.pdf"), caption="../report/pts-pages.rst", category="Report"),
    log:
        layout.path("logs/report_pdf.log"),
    params:
        code=code_digest("report_pdf.py"),
        templates=files_digest("scripts/drivelab/report/templates/pages.*"),
        captions=layout.captions(),
        study=layout.report_facts(),
    script:
        "../../scripts/report_pdf.py"
