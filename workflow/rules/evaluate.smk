rule evaluate:
    input:
        model=inputs.result_of("model"),
        manifest=inputs.pictures,
    output:
        metrics=inputs.pattern("evaluation"),
        classes=inputs.pattern("classes"),
    log:
        f"{LOGS}/evaluate/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    priority: inputs.turn("score")
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=inputs.settings("evaluate"),
        embedded=inputs.settings("embed"),
        root=inputs.pictures_root,
        decoded=DECODED,
        recall_at=inputs.recall_cut_offs,
        levels=inputs.hierarchy_levels,
        made_by=inputs.made_by,
        timing=f"{RESULTS}/{timing_pattern('evaluate')}",
        code=inputs.code("lookalike.workflow.stages.evaluate:evaluate"),
    message:
        "Evaluate {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"
