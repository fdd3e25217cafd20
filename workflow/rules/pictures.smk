if inputs.copies:

    # Only `train` and `embed` read copies: `attribute` and `segment` need masks, which lie on the originals' pixels.
    rule pictures:
        input:
            manifest=inputs.manifest,
        output:
            copied=f"{DATA}/pictures/{{dataset}}-{{form}}.csv",
        log:
            f"{LOGS}/pictures/{{dataset}}-{{form}}.log",
        wildcard_constraints:
            dataset="|".join(inputs.copies),
            form="|".join(sorted({form_of(cache) for cache in inputs.copies.values()})),
        conda:
            "../../environment.yml"
        threads: 8
        params:
            settings=lambda wildcards: plan.picture_cache_of(wildcards.dataset).dump(),
            root=inputs.root,
            code=inputs.code("lookalike.workflow.stages.pictures:pictures"),
        message:
            "Copy the pictures of {wildcards.dataset} in another size"
        script:
            "../scripts/stage.py"
