rule train:
    input:
        manifest=inputs.training_pictures,
        strangers=inputs.strangers,
        selection=inputs.selection,
    output:
        model=inputs.pattern("model"),
        history=inputs.pattern("history"),
    log:
        f"{LOGS}/train/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('train')}"
    priority: inputs.turn("train")
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        stage="train",
        settings=inputs.settings("train"),
        weights=inputs.weights,
        root=inputs.pictures_root,
        decoded=DECODED,
        strangers_root=inputs.strangers_root,
        strangers_super=inputs.strangers_super,
        code=inputs.code("lookalike.workflow.stages.train:train", stage="train"),
        resume=f"{RESULTS}/models/{{recipe}}/{{dataset}}/.seed{{seed}}.unfinished",
    message:
        "Train {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"
