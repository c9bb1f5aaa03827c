rule capture:
    """Record a trace of an application."""
    output:
        trace="<results>/traces/{trace}.parquet",
    log:
        "<results>/logs/capture/{trace}.log",
    priority: scheduling.first
    localrule: True
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.here(),
    params:
        study=lambda wildcards, output: layout.campaign.study.path,
    shell:
        "drivelab capture-trace {params.study:q} {wildcards.trace:q} -o {output.trace:q} > {log:q} 2>&1"


rule trace_statistics:
    """Count the requests of a trace."""
    input:
        trace=lambda wildcards: layout.traces()[wildcards.trace],
        facts=facts.of("traces", {}, "trace_statistics.py trace"),
    output:
        directory("<results>/tables/traces/{trace}"),
    log:
        "<results>/logs/trace_statistics/{trace}.log",
    benchmark:
        "<results>/logs/benchmarks/trace_statistics/{trace}.tsv"
    params:
        file=lambda wildcards: layout.traces()[wildcards.trace],  # another file may be older than the tables
    script:
        "../../scripts/trace_statistics.py"
