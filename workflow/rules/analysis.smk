localrules:
    exclusions,
    summary,
    differences,
    deltas,


rule steady_state:
    """Find the steady-state windows of a recording."""
    input:
        cells="<results>/tables/{drive}/{measurement}/{key}/cells.parquet",
    output:
        windows="<results>/tables/{drive}/{measurement}/{key}/steady_state.parquet",
    log:
        "<results>/logs/steady_state/{drive}/{measurement}/{key}.log",
    benchmark:
        "<results>/logs/benchmarks/steady_state/{drive}/{measurement}/{key}.tsv"
    params:
        code=code_digest("steady_state.py"),
        steps=lambda wildcards: layout.planned(wildcards).plan.subject["measure"],
    script:
        "../../scripts/steady_state.py"


rule exclusions:
    """List the evidence that counts in no result, with the reasons."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        cells=expand("<results>/tables/{recording}/cells.parquet", recording=layout.recordings),
        replays=expand("<results>/tables/{recording}/replays.parquet", recording=layout.recordings),
        application_runs=expand("<results>/tables/{recording}/application_runs.parquet", recording=layout.recordings),
        load_rates=expand("<results>/tables/{recording}/load_rates.parquet", recording=layout.recordings),
    output:
        exclusions="<results>/tables/exclusions.parquet",
    log:
        "<results>/logs/exclusions.log",
    benchmark:
        "<results>/logs/benchmarks/exclusions.tsv"
    params:
        code=code_digest("exclusions.py"),
        others=layout.other_folders(),
        drives=list(layout.campaign.study.subjects),
        measurements=layout.measurements(),
    script:
        "../../scripts/exclusions.py"


rule summary:
    """Summarise all recordings: medians, percentiles and their spread."""
    input:
        exclusions="<results>/tables/exclusions.parquet",
        cells=expand("<results>/tables/{recording}/cells.parquet", recording=layout.recordings),
        latency_bins=expand("<results>/tables/{recording}/latency_bins.parquet", recording=layout.recordings),
        steady_state=expand("<results>/tables/{recording}/steady_state.parquet", recording=layout.recordings),
        replays=expand("<results>/tables/{recording}/replays.parquet", recording=layout.recordings),
        replay_passes=expand("<results>/tables/{recording}/replay_passes.parquet", recording=layout.recordings),
        application_runs=expand("<results>/tables/{recording}/application_runs.parquet", recording=layout.recordings),
        load_rates=expand("<results>/tables/{recording}/load_rates.parquet", recording=layout.recordings),
    output:
        summary="<results>/tables/summary.parquet",
        variation="<results>/tables/variation.parquet",
    log:
        "<results>/logs/summary.log",
    benchmark:
        "<results>/logs/benchmarks/summary.tsv"
    params:
        code=code_digest("summary.py"),
        scores=layout.scores(),
        score_sets=layout.campaign.study.scores,
        basis=layout.campaign.study.basis if layout.campaign.study.scores else None,
        models=layout.models(),
        rse_threshold_pct=layout.campaign.study.rse_threshold_pct,
    script:
        "../../scripts/summary.py"


rule differences:
    """List the conditions in which drives were measured differently."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
        cells=expand("<results>/tables/{recording}/cells.parquet", recording=layout.recordings),
        exclusions="<results>/tables/exclusions.parquet",
    output:
        conditions="<results>/tables/conditions.parquet",
        differences="<results>/tables/differences.parquet",
    log:
        "<results>/logs/differences.log",
    benchmark:
        "<results>/logs/benchmarks/differences.tsv"
    params:
        code=code_digest("differences.py"),
        altered=layout.altered(),
        pairs=layout.compared_pairs(),
        intended=layout.campaign.study.intended,
    script:
        "../../scripts/differences.py"


rule deltas:
    """Compare each drive with the basis."""
    input:
        summary="<results>/tables/summary.parquet",
        differences="<results>/tables/differences.parquet",
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.recordings),
    output:
        deltas="<results>/tables/deltas.parquet",
        model_deltas="<results>/tables/model_deltas.parquet",
    log:
        "<results>/logs/deltas.log",
    benchmark:
        "<results>/logs/benchmarks/deltas.tsv"
    params:
        code=code_digest("deltas.py"),
        basis=layout.campaign.study.basis,
        basis_is_there=layout.campaign.basis_is_there,
        comparison=layout.comparison(),
        models=layout.models(),
    script:
        "../../scripts/deltas.py"


rule findings:
    """Search a recording for anomalies, and its write saturation for phases."""
    input:
        manifest="<results>/recordings/{drive}/{measurement}/{key}/recording.json",
        cells="<results>/tables/{drive}/{measurement}/{key}/cells.parquet",
        series="<results>/tables/{drive}/{measurement}/{key}/series.parquet",
        telemetry="<results>/tables/{drive}/{measurement}/{key}/telemetry.parquet",
        latency_bins="<results>/tables/{drive}/{measurement}/{key}/latency_bins.parquet",
    output:
        findings="<results>/tables/{drive}/{measurement}/{key}/findings.parquet",
        saturation="<results>/tables/{drive}/{measurement}/{key}/saturation.parquet",
    log:
        "<results>/logs/findings/{drive}/{measurement}/{key}.log",
    benchmark:
        "<results>/logs/benchmarks/findings/{drive}/{measurement}/{key}.tsv"
    params:
        code=code_digest("findings.py"),
    script:
        "../../scripts/findings.py"
