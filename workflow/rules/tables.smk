rule facts:
    """Write what an analysis needs to know of the study; the digest in the name is of that and of its code."""
    output:
        "<results>/facts/{analysis}-{digest}.json",
    log:
        "<results>/logs/facts/{analysis}-{digest}.log",
    localrule: True
    params:
        text=lambda wildcards, output: facts.text(wildcards),
    script:
        "../../scripts/facts.py"


rule tables:
    """Read the evidence of a drive's recordings into tables, and find their steady-state windows and anomalies."""
    input:
        manifests=expand("<results>/recordings/{recording}/recording.json", recording=layout.runs),
        facts=facts.of(
            "tables",
            layout.taint_limits(),
            "tables.py analysis.detectors analysis.values collect drives fio native replay telemetry trace",
        ),
    output:
        "<results>/tables/{drive}/{measurement}/made.json",  # the tables of recordings by earlier plans stay
    log:
        "<results>/logs/tables/{drive}/{measurement}.log",
    benchmark:
        "<results>/logs/benchmarks/tables/{drive}/{measurement}.tsv"
    params:
        runs=layout.keys,
        reduced=layout.reduced,
    script:
        "../../scripts/tables.py"


rule analysis:
    """Compute the study's tables (drives, hosts, what counts, summary, deltas …); join those of its recordings."""
    input:
        tables=expand("<results>/tables/{series}/made.json", series=layout.series),
        traces=list(layout.traces().values()),
        trace_tables=expand("<results>/tables/traces/{trace}", trace=layout.traces()),
        facts=facts.of("analysis", layout.analysis_facts, "analysis.py analysis collect fio trace"),
    output:
        tables=expand("<results>/tables/{table}.parquet", table=STUDY_TABLES),
        dataset=directory("<results>/dataset"),
    log:
        "<results>/logs/analysis.log",
    benchmark:
        "<results>/logs/benchmarks/analysis.tsv"
    script:
        "../../scripts/analysis.py"
