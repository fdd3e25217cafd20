# What a recipe computes in its first steps, on pictures of its own and on the processor: the same on every machine.
rule trace:
    output:
        trace=f"{RESULTS}/traces/{{recipe}}/{{dataset}}.json",
    log:
        f"{LOGS}/trace/{{recipe}}-{{dataset}}.log",
    conda:
        "../../environment.yml"
    params:
        settings=inputs.all_settings,
        specification=inputs.specification,
        code=inputs.code("lookalike.stages.trace:trace", stage=None),
    message:
        "Trace {wildcards.recipe} on {wildcards.dataset}"
    script:
        "../scripts/trace.py"


rule regression:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
        reference=committed(gate.reference),
        reference_traces=committed(gate.reference_traces),
        traces=lambda wildcards: list(gate.compared_traces().values()),
    output:
        report=f"{RESULTS}/regression.md",
    log:
        f"{LOGS}/regression.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        tables=evidence.table_files,
        traces=gate.compared_traces,
        committed=gate.committed,
        code=inputs.code("lookalike.reports.regression:regression"),
    message:
        "Hold tables and traces against the committed ones"
    script:
        "../scripts/regression.py"


# All that the gate compares; `.ci/reference` makes it under each setting.
rule measured:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
        lambda wildcards: list(gate.traces().values()),


# Asked for by name only, after a change that is meant to move numbers: `.ci/reference` calls both.
rule reference:
    input:
        gate.measured_files,
    log:
        f"{LOGS}/reference.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=gate.measured_settings,
        reference=gate.reference,
    message:
        "Write the committed numbers anew"
    script:
        "../scripts/reference.py"


rule reference_traces:
    input:
        lambda wildcards: list(gate.traces().values()),
    log:
        f"{LOGS}/reference_traces.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        traces=gate.traces,
        reference=gate.reference_traces,
    message:
        "Write the committed traces anew"
    script:
        "../scripts/reference_traces.py"


# Does the gate stay open where nothing is broken? Each setting against a reference made of the others.
rule unbroken:
    input:
        gate.measured_files,
    output:
        report=f"{RESULTS}/unbroken.md",
    log:
        f"{LOGS}/unbroken.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=gate.measured_settings,
        code=inputs.code("lookalike.reports.regression:unbroken"),
    message:
        "Hold unbroken runs against each other"
    script:
        "../scripts/unbroken.py"
