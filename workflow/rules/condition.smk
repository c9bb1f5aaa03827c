rule purge:
    """Purge the drive.

    Purge, precondition and measure are a group: a cluster runs them as one job, so that no other job comes between.
    """
    input:
        plan=ancient("<results>/plans/{drive}/{measurement}/{key}.json"),
    output:
        seal=temp("<results>/seals/{drive}/{measurement}/{key}.purge.json"),
    log:
        "<results>/logs/purge/{drive}/{measurement}/{key}.log",
    priority: scheduling.priority("purge")
    group:
        "chain"
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("purge"),
    shell:
        "drivelab purge {input.plan:q} --seal {output.seal:q} > {log:q} 2>&1"


rule precondition:
    """Bring the drive to the state that the measurement starts from."""
    input:
        plan=ancient("<results>/plans/{drive}/{measurement}/{key}.json"),
        seal=ancient("<results>/seals/{drive}/{measurement}/{key}.purge.json"),
    output:
        seal=temp("<results>/seals/{drive}/{measurement}/{key}.precondition.json"),
    log:
        "<results>/logs/precondition/{drive}/{measurement}/{key}.log",
    priority: scheduling.priority("precondition")
    group:
        "chain"
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("precondition"),
    shell:
        "drivelab precondition {input.plan:q} --after {input.seal:q} --seal {output.seal:q} > {log:q} 2>&1"
