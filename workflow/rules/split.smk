rule split:
    input:
        # A data set that DVC checks out again, or that is had again, is newer, but no reason to run anything again.
        record=ancient(inputs.download),
    output:
        manifest=f"{DATA}/splits/{{dataset}}.csv",
    log:
        f"{LOGS}/split/{{dataset}}.log",
    priority: inputs.turn()
    conda:
        "../../environment.yml"
    threads: preparing
    params:
        specification=inputs.divided,
        broken=inputs.broken_pictures,
        contents=inputs.contents(config["archives"]),
        code=inputs.code(
            "lookalike.workflow.stages.download:obtain",
            "lookalike.workflow.stages.split:assign",
            "lookalike.workflow.data.screening:screened",
        ),
    message:
        "Split {wildcards.dataset}"
    script:
        "../scripts/stage.py"


# Only with `halves: crossed`: training and test classes in each other's place, of a split or of its copies' list.
rule second_half:
    input:
        manifest=f"{DATA}/{{lists}}/{{listed}}.csv",
    output:
        second=f"{DATA}/{{lists}}/{{listed}}.second.csv",
    log:
        f"{LOGS}/second_half/{{lists}}-{{listed}}.log",
    wildcard_constraints:
        lists="splits|pictures",
        listed=r"[a-z0-9_-]+",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.stages.split:second_half",
        code=inputs.code("lookalike.workflow.stages.split:second_half"),
    message:
        "Let training and test classes of {wildcards.listed} change sides"
    script:
        "../scripts/stage.py"
