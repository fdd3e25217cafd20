# Asked for by name only: `snakemake --cores all rates` searches the rates of each kind of recipe anew, see params/rates.
use rule hold_out as hold_out_last with:
    output:
        held_out=f"{RESULTS}/held_out_last/{{dataset}}{{half}}.csv",
    log:
        f"{LOGS}/hold_out/{{dataset}}{{half}}.log",
    message:
        "Hold out the last training classes of {wildcards.dataset}{wildcards.half}"


# All trials of a kind, on the first recipe of it. Parameters that are not named here are those of `train`.
use rule train as try_rates with:
    input:
        manifest=rules.hold_out_last.output.held_out,
        strangers=inputs.strangers,
    output:
        f"{RESULTS}/rates/{{recipe}}/{{dataset}}{{half}}.csv",
    log:
        f"{LOGS}/rates/{{recipe}}-{{dataset}}{{half}}.log",
    benchmark:
        f"{RESULTS}/timings/rates/{{recipe}}-{{dataset}}{{half}}.tsv"
    params:
        stage="trials",
        settings=inputs.settings_of_trials,
        rates=inputs.rates,
        code=inputs.code("lookalike.workflow.stages.trials:trials", stage="train"),
        training=inputs.code("lookalike.workflow.stages.train:train", stage="train"),
        resume=f"{RESULTS}/rates/{{recipe}}/.{{dataset}}{{half}}.unfinished",
        committed=f"{inputs.reference_folder}/rates/{{recipe}}/{{dataset}}{{half}}.csv",
    message:
        "Try rates for {wildcards.recipe} on {wildcards.dataset}{wildcards.half}"


rule choose_rates:
    input:
        trials=evidence.trials_of_rates,
    output:
        f"params/rates/{plan.rates_of}.csv",
    log:
        f"{LOGS}/rates.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.plan.rates:choose_rates",
        kinds=told(evidence.kinds_of_rates),
        rates=inputs.rates,
        code=inputs.code("lookalike.workflow.plan.rates:choose_rates"),
    message:
        "Choose rates by retrieval on held-out training classes"
    script:
        "../scripts/stage.py"


rule rates:
    # The trials too: choices that are committed must not make a fresh clone believe that it has finished.
    input:
        evidence.trials_of_rates,
        rules.choose_rates.output,
