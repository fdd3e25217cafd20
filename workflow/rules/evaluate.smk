rule evaluate:
    input:
        model=brought.behind("model"),
        embeddings=brought.behind("embeddings"),
    output:
        metrics=inputs.pattern("evaluation"),
        classes=inputs.pattern("classes"),
    log:
        f"{LOGS}/evaluate/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('evaluate')}"
    priority: 2
    conda:
        "../../environment.yml"
    resources:
        gpu=device,
    params:
        settings=inputs.settings("evaluate"),
        recall_at=inputs.recall_cut_offs,
        levels=inputs.hierarchy_levels,
        made_by=inputs.made_by,
        code=inputs.code("lookalike.stages.evaluate:evaluate"),
    message:
        "Evaluate {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/evaluate.py"
