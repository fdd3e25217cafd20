# Only with `--config selection=held_out`: an epoch is chosen without a look at the test classes, to stand beside the last.
rule hold_out:
    input:
        manifest=inputs.pictures,
    output:
        held_out=f"{RESULTS}/selection/{{dataset}}/seed{{seed}}.csv",
    log:
        f"{LOGS}/hold_out/{{dataset}}-seed{{seed}}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="hold_out",
        code=inputs.code("lookalike.workflow.stages.hold_out:hold_out"),
    message:
        "Hold out classes of {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"


# Parameters that are not named here are those of `train`.
use rule train as select with:
    input:
        manifest=rules.hold_out.output.held_out,
        strangers=inputs.strangers,
        selection=[],
    output:
        model=temp(f"{RESULTS}/selection/{{recipe}}/{{dataset}}/seed{{seed}}.safetensors"),
        history=f"{RESULTS}/selection/{{recipe}}/{{dataset}}/seed{{seed}}.csv",
    log:
        f"{LOGS}/select/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('select')}"
    params:
        resume=f"{RESULTS}/selection/{{recipe}}/{{dataset}}/.seed{{seed}}.unfinished",
    message:
        "Select the epoch of {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
