# Purge, precondition and measure are a group: a cluster runs them as one job, so that no other job comes between.
rule purge:
    input:
        plan=ancient(layout.path("plans/RECORDING.json")),
    output:
        seal=temp(layout.path("seals/RECORDING.purge.json")),
    log:
        layout.path("logs/purge/RECORDING.log"),
    priority: scheduling.priority("purge")
    group:
        "chain"
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("purge"),
    shell:
        "{STAGE} purge {input.plan:q} --seal {output.seal:q} > {log:q} 2>&1"


rule precondition:
    input:
        plan=ancient(layout.path("plans/RECORDING.json")),
        seal=ancient(layout.path("seals/RECORDING.purge.json")),
    output:
        seal=temp(layout.path("seals/RECORDING.precondition.json")),
    log:
        layout.path("logs/precondition/RECORDING.log"),
    priority: scheduling.priority("precondition")
    group:
        "chain"
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("precondition"),
    shell:
        "{STAGE} precondition {input.plan:q} --after {input.seal:q} --seal {output.seal:q} > {log:q} 2>&1"
