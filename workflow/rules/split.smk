rule split:
    input:
        # A data set that DVC checks out again, or that is had again, is newer, but no reason to run anything again.
        record=ancient(inputs.download),
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
        "Split {wildcards.dataset}"
    script:
        "../scripts/split.py"
