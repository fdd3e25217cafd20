if plan.picture_cache:

    # Only `train` and `embed` read copies: `attribute` and `segment` need masks, which lie on the originals' pixels.
    rule pictures:
        input:
            manifest=manifest_of,
        output:
            manifest=copied_manifest("{dataset}"),
        log:
            f"{LOGS}/pictures/{{dataset}}.log",
        conda:
            "../../environment.yml"
        threads: 8
        params:
            settings=plan.picture_cache,
            root=root_of,
            code=code("lookalike.stages.pictures:pictures"),
        message:
            "Copy the pictures of {wildcards.dataset} in another size"
        script:
            "../scripts/pictures.py"
