"""What the rules share: the plan of this call, and functions from wildcards to parameters and paths."""

from lookalike.calls import drop_locks_of_the_dead
from lookalike.claims import ATTRIBUTIONS, claim_runs, read_claims
from lookalike.devices import visible_devices
from lookalike.fidelity import PAPERS, choices
from lookalike.jobs import start_parent
from lookalike.plan import Plan
from lookalike.source import code_digest
from lookalike.trials import overruled_trials, trial_runs

drop_locks_of_the_dead()
try:
    plan = Plan(config)
    runs = plan.runs
except ValueError as error:  # meant for users: its message, without a trace of where it was raised
    raise WorkflowError(str(error)) from None

SCALE = plan.scale
RESULTS = f"results/{SCALE}"
LOGS = f"logs/{SCALE}"
DATA = plan.data_folder
# One device per job where there is one, or where jobs run on other machines. Without a device the limit
# `--resources gpu=1` must not put jobs in line that do not use any.
GPU = 1 if visible_devices() or workflow.remote_exec or workflow.non_local_exec else 0
# Beside a device, processor cores load pictures; without one, each job has a core to itself.
THREADS = 8 if GPU else 1


wildcard_constraints:
    recipe=r"[a-z][a-z0-9_]*",
    dataset=r"[a-z][a-z0-9_]*",
    seed=r"\d+",
    table=r"[a-z][a-z0-9_]*",


def preload():
    """Import torch once for all jobs of this call; they find the process by its address in the environment."""
    global parent
    parent = start_parent()


def code(*entry_points, stage="evaluate"):
    """Digest of the code behind a rule, for the parts that a job's recipe names up to a stage."""

    def digest(wildcards):
        if hasattr(wildcards, "recipe"):
            return code_digest(entry_points, plan.settings(wildcards.recipe, wildcards.dataset, stage))
        return code_digest(
            entry_points,
            dataset_specification(wildcards) if hasattr(wildcards, "dataset") else None,
        )

    return digest


def settings(stage):
    """One section of a job's recipe."""
    return lambda wildcards: plan.settings(wildcards.recipe, wildcards.dataset)[stage]


def result_of(stage, pattern):
    """File of an earlier stage, under the name of the recipe that stands for all with equal settings."""

    def path(wildcards):
        recipe = plan.shared(stage, wildcards.recipe, wildcards.dataset)
        return pattern.format(recipe=recipe, dataset=wildcards.dataset, seed=wildcards.seed)

    return path


def strangers_manifest(wildcards):
    strangers = plan.strangers(wildcards.recipe, wildcards.dataset)
    return f"{DATA}/splits/{strangers.name}.csv" if strangers else []


def strangers_root(wildcards):
    strangers = plan.strangers(wildcards.recipe, wildcards.dataset)
    return strangers.root if strangers else ""


def manifest_of(wildcards):
    return f"{DATA}/splits/{wildcards.dataset}.csv"


def root_of(wildcards):
    return plan.datasets[wildcards.dataset].root


def dataset_specification(wildcards):
    return plan.datasets[wildcards.dataset].specification


def recall_cut_offs(wildcards):
    return plan.datasets[wildcards.dataset].specification["recall_at"]


def runs_of_table(wildcards):
    """The runs behind a table, without the files of their metrics."""
    return plan.runs_of(wildcards.table).to_dict("records")


def metrics_of_table(wildcards):
    """Files with the metrics of the runs behind a table, in the order of the runs."""
    return [
        f"{RESULTS}/metrics/{plan.shared('evaluate', run.recipe, run.dataset)}/{run.dataset}/seed{run.seed}.json"
        for run in plan.runs_of(wildcards.table).itertuples()
    ]


def table_files(wildcards):
    return {table: f"{RESULTS}/tables/{table}.csv" for table in plan.table_names}


def published_digest(wildcards):
    return plan.published_digest(wildcards.table)


def tags(wildcards):
    """By what MLflow finds a run again; empty with tracking off."""
    if not plan.tracking:
        return {}
    own = {
        "scale": SCALE,
        "recipe": wildcards.recipe,
        "dataset": wildcards.dataset,
        "seed": wildcards.seed,
    }
    return {**own, "experiment": plan.paper_of(wildcards.recipe)}


def runs_of_trials(wildcards):
    """The runs that try the options of `params/fidelity`, without the files of their metrics."""
    return trial_runs(plan).to_dict("records")


def metrics_of_trials(column):
    """Files with the metrics of the trials or of the recipes they change, in the order of the runs."""

    def paths(wildcards):
        return [
            f"{RESULTS}/metrics/{plan.shared('evaluate', recipe, dataset)}/{dataset}/seed{seed}.json"
            for recipe, dataset, seed in trial_runs(plan)[[column, "dataset", "seed"]].itertuples(index=False)
        ]

    return paths


def overruled(wildcards):
    return overruled_trials(plan)


def stated_choices(wildcards):
    return {paper: choices(paper) for paper in PAPERS}


try:
    claims = read_claims(plan)
    claimed_runs = claim_runs(plan, claims)
except ValueError as error:
    raise WorkflowError(str(error)) from None


def evidence(side):
    """Files with what one side of all compared pairs has reached, in the order of the runs."""

    def path(run):
        made, stage = ("attributions", "train") if run["metric"] in ATTRIBUTIONS else ("metrics", "evaluate")
        recipe = plan.shared(stage, run[side], run["dataset"])
        return f"{RESULTS}/{made}/{recipe}/{run['dataset']}/seed{run['seed']}.json"

    return lambda wildcards: [path(run) for run in claimed_runs]
