localrules:
    plan,
    facts,


rule plan:
    """Write the plan of a recording: what is measured on which drive."""
    output:
        temp("<results>/plans/{drive}/{measurement}/{key}.json"),
    log:
        "<results>/logs/plan/{drive}/{measurement}/{key}.log",
    priority: scheduling.priority_of_plan
    resources:
        **scheduling.planning(),
    params:
        # Snakemake does not compare parameters that depend on the output: the path has the plan's digest.
        plan=lambda wildcards, output: layout.planned(wildcards).plan.to_json(),
    shell:
        "printf '%s\n' {params.plan:q} > {output:q} 2> {log:q}"


rule facts:
    """Write what an analysis needs to know of the study; the digest in the name is of that and of its code."""
    output:
        "<results>/facts/{analysis}-{digest}.json",
    log:
        "<results>/logs/facts/{analysis}-{digest}.log",
    wildcard_constraints:
        analysis="[a-z]+",
        digest="[0-9a-f]{16}",
    params:
        text=lambda wildcards, output: facts.text(wildcards),
    script:
        "../../scripts/facts.py"
