rule attribute:
    input:
        model=result_of("model"),
        manifest=manifest_of,
    output:
        attributions=results("attribution"),
    log:
        f"{LOGS}/attribute/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('attribute')}"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=GPU,
    params:
        root=root_of,
        code=code("lookalike.stages.attribute:attribute", stage="train"),
    message:
        "Measure the attention of {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/attribute.py"
