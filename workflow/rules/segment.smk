rule episodes:
    # One list for all recipes of a scale whose queries show one class: as long as the one that asks for most.
    input:
        manifest=inputs.manifest,
    output:
        listed=episodes_of(f"{DATA}/splits/{{dataset}}.csv", ways=1),
        digest=episodes_of(f"{DATA}/splits/{{dataset}}.csv", ways=1) + ".sha256",
    log:
        f"{LOGS}/episodes/{{dataset}}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="episodes",
        longest=inputs.longest_episodes,
        ways=1,
        code=inputs.code("lookalike.workflow.stages.episodes:episodes"),
    message:
        "Draw the episodes of {wildcards.dataset}"
    script:
        "../scripts/stage.py"


# Parameters that are not named here are those of `episodes`.
use rule episodes as two_way_episodes with:
    output:
        listed=episodes_of(f"{DATA}/splits/{{dataset}}.csv", ways=2),
        digest=episodes_of(f"{DATA}/splits/{{dataset}}.csv", ways=2) + ".sha256",
    log:
        f"{LOGS}/two_way_episodes/{{dataset}}.log",
    params:
        ways=2,
    message:
        "Draw the two-way episodes of {wildcards.dataset}"


rule segment:
    input:
        model=inputs.result_of("model"),
        manifest=inputs.manifest,
        episodes=inputs.episodes,
        digest=inputs.episodes_digest,
    output:
        segmentations=inputs.pattern("segmentation"),
    log:
        f"{LOGS}/segment/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('segment')}"
    priority: inputs.turn("score")
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=inputs.settings("segment"),
        root=inputs.root,
        made_by=inputs.made_by,
        code=inputs.code("lookalike.workflow.stages.segment:segment", stage="segment"),
    message:
        "Segment {wildcards.dataset} with {wildcards.recipe}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"
