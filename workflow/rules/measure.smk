rule measure:
    input:
        plan=ancient(layout.path("plans/RECORDING.json")),
        seal=ancient(layout.path("seals/RECORDING.precondition.json")),
    output:
        manifest=layout.path("recordings/RECORDING/recording.json"),
    log:
        layout.path("logs/measure/RECORDING.log"),
    wildcard_constraints:
        measurement=f"(?!({layout.traced_measurements()})/)[A-Za-z0-9.-]+",
    priority: 30
    threads: layout.all_cores(workflow.cores)
    resources:
        **layout.drive_resources(),
    shell:
        "{STAGE} measure {input.plan:q} --after {input.seal:q} > {log:q} 2>&1"


use rule measure as replay with:
    input:
        plan=ancient(layout.path("plans/RECORDING.json")),
        seal=ancient(layout.path("seals/RECORDING.precondition.json")),
        traces=ancient(layout.traces_of),
    log:
        layout.path("logs/replay/RECORDING.log"),
    wildcard_constraints:
        measurement=layout.traced_measurements(),
