# Asked for by name only: `snakemake --cores all rates` chooses rates of trunk and head anew, see params/rates.
TRIAL = f"{RESULTS}/rates/{{recipe}}/{{dataset}}/trial{{trial}}-seed{{seed}}"


use rule hold_out as hold_out_last with:
    output:
        manifest=f"{RESULTS}/rates/{{dataset}}.csv",
    log:
        f"{LOGS}/hold_out/{{dataset}}.log",
    message:
        "Hold out the last training classes of {wildcards.dataset}"


# Parameters that are not named here are those of `train`.
use rule train as try_rates with:
    input:
        manifest=rules.hold_out_last.output.manifest,
        strangers=inputs.strangers,
        selection=[],
    output:
        model=temp(f"{TRIAL}.safetensors"),
        history=f"{TRIAL}.csv",
    log:
        f"{LOGS}/rates/{{recipe}}-{{dataset}}-trial{{trial}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/timings/rates/{{recipe}}-{{dataset}}-trial{{trial}}-seed{{seed}}.tsv"
    params:
        settings=inputs.settings_of_trial,
        resume=f"{RESULTS}/rates/{{recipe}}/{{dataset}}/.trial{{trial}}-seed{{seed}}.unfinished",
    message:
        "Try rates {wildcards.trial} for {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"


rule choose_rates:
    input:
        histories=evidence.histories_of_rates,
    output:
        f"params/rates/{plan.rates_of}.csv",
    log:
        f"{LOGS}/rates.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        trials=told(evidence.trials_of_rates),
        rates=plan.rates,
        code=inputs.code("lookalike.stages.rates:rates"),
    message:
        "Choose rates by retrieval on held-out training classes"
    script:
        "../scripts/rates.py"


rule rates:
    # The trials too: choices that are committed must not make a fresh clone believe that it has finished.
    input:
        evidence.histories_of_rates,
        rules.choose_rates.output,
