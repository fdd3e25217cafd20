rule evaluate:
    input:
        model=result_of("model"),
        embeddings=result_of("embeddings"),
    output:
        metrics=results("evaluation"),
    log:
        f"{LOGS}/evaluate/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('evaluate')}"
    conda:
        "../../environment.yml"
    resources:
        gpu=GPU,
    params:
        settings=settings("evaluate"),
        recall_at=recall_cut_offs,
        levels=hierarchy_levels,
        code=code("lookalike.stages.evaluate:evaluate"),
    message:
        "Evaluate {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/evaluate.py"
