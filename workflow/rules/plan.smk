rule plan:
    output:
        temp(layout.path("plans/RECORDING.json")),
    params:
        plan=lambda wildcards: layout.planned(wildcards).plan.to_json(),
    priority: scheduling.priority_of_plan
    shell:
        "printf '%s\n' {params.plan:q} > {output:q}"
