rule train:
    input:
        manifest=manifest_of,
        strangers=strangers_manifest,
    output:
        model=f"{RESULTS}/models/{{recipe}}/{{dataset}}/seed{{seed}}.safetensors",
        history=f"{RESULTS}/models/{{recipe}}/{{dataset}}/seed{{seed}}.csv",
    log:
        f"{LOGS}/train/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/timings/train/{{recipe}}-{{dataset}}-seed{{seed}}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=GPU,
    params:
        settings=settings("train"),
        root=root_of,
        strangers_root=strangers_root,
        code=code("lookalike.stages.train:train", stage="train"),
        resume=f"{RESULTS}/models/{{recipe}}/{{dataset}}/.seed{{seed}}.unfinished",
        tags=tags,
    message:
        "Train {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/train.py"
