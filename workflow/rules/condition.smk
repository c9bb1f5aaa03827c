rule purge:
    input:
        plan=ancient(layout.path("plans/RECORDING.json")),
    output:
        seal=temp(layout.path("seals/RECORDING.purge.json")),
    log:
        layout.path("logs/purge/RECORDING.log"),
    priority: 10
    threads: layout.all_cores(workflow.cores)
    resources:
        **layout.drive_resources(),
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
    priority: 20
    threads: layout.all_cores(workflow.cores)
    resources:
        **layout.drive_resources(),
    shell:
        "{STAGE} precondition {input.plan:q} --after {input.seal:q} --seal {output.seal:q} > {log:q} 2>&1"
