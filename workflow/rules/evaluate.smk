rule evaluate:
    input:
        model=inputs.result_of("model"),
        embeddings=inputs.result_of("embeddings"),
    output:
        metrics=inputs.pattern("evaluation"),
        classes=inputs.pattern("classes"),
    log:
        f"{LOGS}/evaluate/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('evaluate')}"
    conda:
        "../../environment.yml"
    resources:
        gpu=device,
    params:
        settings=inputs.settings("evaluate"),
        recall_at=inputs.recall_cut_offs,
        levels=inputs.hierarchy_levels,
        code=inputs.code("lookalike.stages.evaluate:evaluate"),
    message:
        "Evaluate {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/evaluate.py"
