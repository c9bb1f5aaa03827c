rule capture:
    output:
        trace=layout.path("traces/{trace}.parquet"),
    log:
        layout.path("logs/capture/{trace}.log"),
    priority: scheduling.first
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.here(),
    params:
        study=str(layout.campaign.study.path),
    shell:
        "{STAGE} capture-trace {params.study:q} {wildcards.trace:q} -o {output.trace:q} > {log:q} 2>&1"


rule trace_statistics:
    input:
        trace=lambda wildcards: layout.traces()[wildcards.trace],
    output:
        **layout.trace_tables(),
    log:
        layout.path("logs/trace_statistics/{trace}.log"),
    wildcard_constraints:
        trace=layout.trace_names(),
    params:
        code=code_digest("trace_statistics.py"),
    script:
        "../../scripts/trace_statistics.py"
