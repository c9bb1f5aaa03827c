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
        key=layout.keys_of_single(),
    priority: scheduling.priority("measure")
    group:
        "chain"
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("measure"),
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
        key=layout.keys_of_single(),


for number, group in enumerate(layout.simultaneous(), start=1):

    rule:
        name:
            f"measure_together_{number}"
        input:
            plans=ancient(group.plans),
            seals=ancient(group.seals),
            traces=ancient(group.traces),
        output:
            manifests=group.manifests,
        log:
            group.log,
        priority: scheduling.priority_together(group.recordings)
        group:
            "chain"
        threads: scheduling.cores(workflow.cores)
        resources:
            **scheduling.together(group.recordings),
        shell:
            "{STAGE} measure-together {input.plans:q} --after {input.seals:q} > {log:q} 2>&1"
