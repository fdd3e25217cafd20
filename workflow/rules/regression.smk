# What a recipe computes in its first steps, on pictures of its own and on the processor: the same on every machine.
rule trace:
    output:
        trace=f"{RESULTS}/traces/{{recipe}}/{{dataset}}.json",
    log:
        f"{LOGS}/trace/{{recipe}}-{{dataset}}.log",
    conda:
        "../../environment.yml"
    resources:
        gpu=0,
    params:
        settings=inputs.all_settings,
        specification=inputs.specification,
        code=inputs.code("lookalike.workflow.stages.trace:trace", stage=None),
    message:
        "Trace {wildcards.recipe} on {wildcards.dataset}"
    script:
        "../scripts/stage.py"


rule regression:
    input:
        lambda wildcards: list(told(gate.tables)().values()),
        lambda wildcards: list(gate.compared_traces().values()),
        claims=told(gate.claims),
        reference_claims=committed(gate.reference_claims),
        reference=committed(gate.reference),
        reference_traces=committed(gate.reference_traces),
    output:
        report=f"{RESULTS}/regression.md",
    log:
        f"{LOGS}/regression.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.regression:regression",
        tables=gate.tables,
        traces=gate.compared_traces,
        held=gate.held,
        committed=gate.committed,
        other_code=told(gate.other_code),
        code=inputs.code("lookalike.workflow.report.regression:regression"),
    message:
        "Hold tables and traces against the committed ones"
    script:
        "../scripts/stage.py"


# All that the gate compares; `.ci/reference` makes it under each setting.
rule measured:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
        lambda wildcards: list(gate.traces().values()),


# Asked for by name only, after a change that is meant to move numbers: `.ci/reference` calls both.
rule numbers:
    input:
        gate.measured_files,
    log:
        f"{LOGS}/numbers.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.regression:record",
        settings=gate.measured_settings,
        reference=gate.reference,
        code=inputs.code("lookalike.workflow.report.regression:record"),
    message:
        "Write the committed numbers anew"
    script:
        "../scripts/stage.py"


rule traces:
    input:
        lambda wildcards: list(gate.traces().values()),
    log:
        f"{LOGS}/traces.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.regression:record_traces",
        traces=gate.traces,
        reference=gate.reference_traces,
        other_code=told(gate.other_code),
        code=inputs.code("lookalike.workflow.report.regression:record_traces"),
    message:
        "Write the committed traces anew"
    script:
        "../scripts/stage.py"


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
        stage="lookalike.workflow.report.regression:unbroken",
        settings=gate.measured_settings,
        code=inputs.code("lookalike.workflow.report.regression:unbroken"),
    message:
        "Hold unbroken runs against each other"
    script:
        "../scripts/stage.py"


# Asked for by name only, once results are made: `snakemake --cores all adopt`, with what else the call was given.
rule adopt:
    log:
        f"{LOGS}/adopt.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.reference:adopt",
        made=RESULTS,
        committed=inputs.reference_folder,
        call=inputs.call,
        code=inputs.code("lookalike.workflow.report.reference:adopt"),
    message:
        "Take over {params.made} as what the repository shows"
    script:
        "../scripts/stage.py"
