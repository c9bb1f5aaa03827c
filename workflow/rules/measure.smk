rule measure:
    """Measure the drive."""
    input:
        plan=ancient("<results>/plans/{drive}/{measurement}/{key}.json"),
        seal=ancient("<results>/seals/{drive}/{measurement}/{key}.precondition.json"),
    output:
        manifest="<results>/recordings/{drive}/{measurement}/{key}/recording.json",
    log:
        "<results>/logs/measure/{drive}/{measurement}/{key}.log",
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
        "drivelab measure {input.plan:q} --after {input.seal:q} > {log:q} 2>&1"


use rule measure as replay with:
    # Replay traces on the drive.
    input:
        plan=ancient("<results>/plans/{drive}/{measurement}/{key}.json"),
        seal=ancient("<results>/seals/{drive}/{measurement}/{key}.precondition.json"),
        traces=ancient(layout.traces_of),
    log:
        "<results>/logs/replay/{drive}/{measurement}/{key}.log",
    wildcard_constraints:
        measurement=layout.traced_measurements(),
        key=layout.keys_of_single(),


# Each group of drives that are measured at the same time is one job.
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
            "drivelab measure-together {input.plans:q} --after {input.seals:q} > {log:q} 2>&1"
