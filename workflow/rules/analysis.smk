localrules:
    analysis,


rule analysis:
    """Say what counts, summarise the recordings, and compare the drives with the basis."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        cells=expand("<results>/tables/{recording}/cells.parquet", recording=layout.recordings),
        latency_bins=expand("<results>/tables/{recording}/latency_bins.parquet", recording=layout.recordings),
        steady_state=expand("<results>/tables/{recording}/steady_state.parquet", recording=layout.recordings),
        replays=expand("<results>/tables/{recording}/replays.parquet", recording=layout.recordings),
        replay_passes=expand("<results>/tables/{recording}/replay_passes.parquet", recording=layout.recordings),
        application_runs=expand("<results>/tables/{recording}/application_runs.parquet", recording=layout.recordings),
        load_rates=expand("<results>/tables/{recording}/load_rates.parquet", recording=layout.recordings),
    output:
        exclusions="<results>/tables/exclusions.parquet",
        summary="<results>/tables/summary.parquet",
        variation="<results>/tables/variation.parquet",
        conditions="<results>/tables/conditions.parquet",
        differences="<results>/tables/differences.parquet",
        deltas="<results>/tables/deltas.parquet",
        model_deltas="<results>/tables/model_deltas.parquet",
    log:
        "<results>/logs/analysis.log",
    benchmark:
        "<results>/logs/benchmarks/analysis.tsv"
    params:
        code=digest("analysis.py", "analysis", "collect", "fio", "trace"),
        study=layout.analysis_facts(),
    script:
        "../../scripts/analysis.py"
