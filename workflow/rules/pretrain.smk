# Asked for by name only: the start is committed, see params/start.yaml.
START = inputs.start


rule pretrain:
    output:
        weights=START.weights,
        history=str(Path(START.weights).with_suffix(".csv")),
    log:
        "logs/pretrain.log",
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=START.train,
        drawn=[each.dump() for each in START.drawn],
        measured_on=[each.dump() for each in START.measured_on],
        seed=0,
        folder="data/start",
        code=inputs.code_of_start("lookalike.workflow.stages.pretrain:pretrain"),
    message:
        "Train the start on figurines that no data set shows"
    script:
        "../scripts/stage.py"
