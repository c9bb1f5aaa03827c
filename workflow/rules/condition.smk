rule purge:
    """Write the plan of a recording, what is measured on which drive, and purge the drive."""
    output:
        plan=temp("<results>/plans/{drive}/{measurement}/{key}.json"),
        seal=temp("<results>/seals/{drive}/{measurement}/{key}.purge.json"),
    log:
        "<results>/logs/purge/{drive}/{measurement}/{key}.log",
    priority: scheduling.priority("purge")
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("purge"),
    params:
        # Snakemake does not compare parameters that depend on the output: the path has the plan's digest.
        plan=lambda wildcards, output: layout.planned(wildcards).plan.to_json(),
    shell:
        "printf '%s\n' {params.plan:q} > {output.plan:q};"
        " drivelab purge {output.plan:q} --seal {output.seal:q} > {log:q} 2>&1"


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
    threads: scheduling.cores(workflow.cores)
    resources:
        **scheduling.chain("precondition"),
    shell:
        "drivelab precondition {input.plan:q} --after {input.seal:q} --seal {output.seal:q} > {log:q} 2>&1"
