rule split:
    # No input: this stage brings the download up to date by itself, as DVC does with stages that depend on each other.
    # A data set that DVC checks out again is newer, but no reason to run anything again.
    output:
        manifest=f"{DATA}/splits/{{dataset}}.csv",
    log:
        f"{LOGS}/split/{{dataset}}.log",
    conda:
        "../../environment.yml"
    threads: 4  # that decode pictures
    params:
        specification=inputs.specification,
        broken=inputs.broken_pictures,
        code=inputs.code(
            "lookalike.stages.download:obtain",
            "lookalike.stages.split:assign",
            "lookalike.data.screening:screened",
        ),
    message:
        "Get and split {wildcards.dataset}"
    script:
        "../scripts/split.py"
