rule measure:
    """Measure the drive, unless it was measured at the same time as others."""
    input:
        plan=ancient("<results>/plans/{drive}/{measurement}/{key}.json"),
        seal=ancient("<results>/seals/{drive}/{measurement}/{key}.precondition.json"),
        together=ancient(layout.measured_together),
        traces=ancient(layout.traces_of),
    output:
        manifest="<results>/recordings/{drive}/{measurement}/{key}/recording.json",
    log:
        "<results>/logs/measure/{drive}/{measurement}/{key}.log",
    wildcard_constraints:
        measurement=f"(?!({layout.traced_measurements()})/)[A-Za-z0-9.-]+",
    priority: scheduling.priority("measure")
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("measure"),
    shell:
        "drivelab measure {input.plan:q} --after {input.seal:q} > {log:q} 2>&1"


use rule measure as replay with:
    # Replay traces on the drive.
    log:
        "<results>/logs/replay/{drive}/{measurement}/{key}.log",
    wildcard_constraints:
        measurement=layout.traced_measurements(),


rule measure_together:
    """Measure several drives at the same time, the first of which names the job."""
    input:
        plans=ancient(expand("<results>/plans/{recording}.json", recording=layout.together)),
        seals=ancient(expand("<results>/seals/{recording}.precondition.json", recording=layout.together)),
        traces=ancient(layout.traces_of),
    output:
        temp(touch("<results>/together/{drive}/{measurement}/{key}")),
    log:
        "<results>/logs/measure_together/{drive}/{measurement}/{key}.log",
    priority: scheduling.priority("measure")
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("measure", together=True),
    shell:
        "drivelab measure-together {input.plans:q} --after {input.seals:q} > {log:q} 2>&1"
