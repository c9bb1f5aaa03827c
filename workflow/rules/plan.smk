localrules:
    plan,


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
        plan=lambda wildcards: layout.planned(wildcards).plan.to_json(),
    shell:
        "printf '%s\n' {params.plan:q} > {output:q} 2> {log:q}"
