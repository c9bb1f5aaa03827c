rule capture:
    output:
        trace=layout.path("traces/{trace}.parquet"),
    log:
        layout.path("logs/capture/{trace}.log"),
    priority: 40
    threads: layout.all_cores(workflow.cores)
    resources:
        measuring=1,
    params:
        study=str(layout.campaign.study.path),
    shell:
        "{STAGE} capture-trace {params.study:q} {wildcards.trace:q} -o {output.trace:q} > {log:q} 2>&1"
