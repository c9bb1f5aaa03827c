rule capture:
    output:
        trace=layout.path("traces/{trace}.parquet"),
    params:
        study=str(layout.campaign.study.path),
    log:
        layout.path("logs/capture/{trace}.log"),
    priority: 40
    resources:
        measuring=1,
    shell:
        "drivelab capture-trace {params.study:q} {wildcards.trace:q} -o {output.trace:q} > {log:q} 2>&1"
