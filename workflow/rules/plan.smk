rule plan:
    output:
        temp(layout.path("plans/RECORDING.json")),
    priority: scheduling.priority_of_plan
    resources:
        **scheduling.planning(),
    params:
        plan=lambda wildcards: layout.planned(wildcards).plan.to_json(),
    shell:
        "printf '%s\n' {params.plan:q} > {output:q}"
