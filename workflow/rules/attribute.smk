rule attribute:
    input:
        model=inputs.result_of("model"),
        manifest=inputs.manifest,
    output:
        attributions=inputs.pattern("attribution"),
    log:
        f"{LOGS}/attribute/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('attribute')}"
    priority: 2
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        root=inputs.root,
        code=inputs.code("lookalike.workflow.stages.attribute:attribute", stage="train"),
    message:
        "Measure the attention of {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"
