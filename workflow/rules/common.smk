"""What the rules share: the plan of this call, and functions from wildcards to parameters and paths."""

import os
import sys
from functools import cache
from pathlib import Path

from snakemake.io import IOFile

from lookalike.running.locks import drop_locks_of_the_dead
from lookalike.plan.claims import ATTRIBUTIONS, claim_runs, read_claims
from lookalike.running.devices import loading_threads, visible_devices
from lookalike.plan.fidelity import choices, departures, papers
from lookalike.plan.digests import recipe_digest
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.needs import check_archives, check_inputs
from lookalike.running.jobs import start_parent
from lookalike.checks import require_known
from lookalike.parameters import read_yaml
from lookalike.paths import PACKAGE, episodes_of
from lookalike.plan.plan import Plan
from lookalike.plan.results import result_file, result_pattern
from lookalike.running.code import code_digest
from lookalike.plan.older import refuse_unnoticed
from lookalike.plan.origin import origin, rebuilding_options, terms_of
from lookalike.plan.timings import timing_pattern
from lookalike.plan.traces import (
    mutation_requests,
    read_mutations,
    trace_name,
    traced,
)
from lookalike.tracking.server import ask_server, recently_away
from lookalike.plan.trials import overruled_trials, trial_runs

drop_locks_of_the_dead()
try:
    for path in workflow.configfiles:  # Snakemake reads these without a word on keys that stand twice
        read_yaml(Path(path).absolute())
    plan = Plan(config)
    runs, sweeps = plan.runs, plan.sweeps  # read and checked here, also where this call needs neither
    check_inputs(plan, list(runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False, name=None)))
    mutations = read_mutations()
except ValueError as error:  # meant for users: its message, without a trace of where it was raised
    raise WorkflowError(str(error)) from None

config["tracking"] = plan.tracking  # scripts read it there: switching it is no reason to run anything again
SCALE = plan.scale
RESULTS = f"results/{plan.folder}"
LOGS = f"logs/{plan.folder}"
DATA = plan.data_folder
DECODED = f"{DATA}/decoded"
COPIES = {name: plan.picture_cache_of(name) for name in plan.datasets if plan.picture_cache_of(name)}
# One device per job where there is one, or where jobs run on other machines. Without a device the limit
# `--resources gpu=1` must not put jobs in line that do not use any.
GPU = 1 if visible_devices() or workflow.remote_exec or workflow.non_local_exec else 0
# Beside a device, processor cores load pictures; without one, each job has a core to itself.
THREADS = loading_threads() if GPU else 1
PAGE = str(PACKAGE / "tables" / "page.html")  # template of the page with all tables


wildcard_constraints:
    recipe=r"[a-z][a-z0-9_]*",
    dataset=r"[a-z][a-z0-9_]*",
    seed=r"\d+",
    table=r"[a-z][a-z0-9_]*",
    mutation=r"[a-z][a-z0-9_]*",


def preload():
    """Import torch once for all jobs of this call; they find the process by its address in the environment."""
    global parent
    parent = start_parent(tracked=plan.tracking)
    # With a limit to the jobs it starts in a second, Snakemake 9.27 sets one more timer at each look for jobs, and each
    # timer looks again a second later: after 200 jobs that is half a core. Jobs of this machine need no such limit.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def refuse_missing_archives():
    """Before the first job, not hours later when it is the turn of a data set that only a person can fetch."""
    names = {job.wildcards.dataset for job in workflow.dag.needrun_jobs() if job.rule.name == "split"}
    try:
        check_archives([plan.datasets[name] for name in sorted(names)], Path(config["archives"]))
    except ValueError as error:
        raise WorkflowError(str(error)) from None


def ask_for_tracking():
    """Find out once for all jobs whether runs can be tracked; one line if they cannot."""
    global away
    if away := ask_server() if plan.tracking else "":
        print(away, file=sys.stderr, flush=True)


def tell_what_was_not_tracked():
    """One line at the end if the server went away meanwhile."""
    if plan.tracking and not away and (found := recently_away()):
        print(found, file=sys.stderr, flush=True)


def code(*entry_points, stage="evaluate"):
    """Digest of the code behind a rule, for the parts that a job's recipe names up to a stage."""

    def digest(wildcards):
        if hasattr(wildcards, "recipe"):
            return recipe_digest(entry_points, plan.settings(wildcards.recipe, wildcards.dataset, stage))
        return code_digest(
            entry_points,
            dataset_specification(wildcards) if hasattr(wildcards, "dataset") else None,
        )

    return digest


def training_code(recipe, dataset):
    """Digest of the code that would train a run now."""
    return recipe_digest(["lookalike.stages.train:train"], plan.settings(recipe, dataset, "train"))


def settings(stage):
    """One section of a job's recipe."""
    return lambda wildcards: plan.settings(wildcards.recipe, wildcards.dataset)[stage]


def all_settings(wildcards):
    """All sections of a job's recipe."""
    return plan.settings(wildcards.recipe, wildcards.dataset)


def results(kind):
    """Files of a kind, of whatever run."""
    return f"{RESULTS}/{result_pattern(kind)}"


def result_of(kind):
    """File of an earlier stage of a job's run."""

    def file(wildcards):
        plan.check_run(wildcards.recipe, wildcards.dataset)
        check_wanted(wildcards.recipe, wildcards.dataset)
        return stored(kind, wildcards.recipe, wildcards.dataset, wildcards.seed)

    return file


@cache
def check_wanted(recipe, dataset):
    """Refuse a run that cannot be trained, also one that no table holds and that was asked for by its file."""
    plan.check_training(recipe, dataset)
    check_inputs(plan, [(recipe, dataset)])


def stored(kind, recipe, dataset, seed):
    """File of a run, under the name of the recipe that stands for all with equal settings."""
    plan.refuse_unknown(recipe=recipe, dataset=dataset)
    return f"{RESULTS}/{result_file(plan, kind, recipe, dataset, int(seed))}"


def selection_of(wildcards):
    """History of the training that chooses the epoch, nothing where the test pictures choose it."""
    if not plan.holds_out:
        return []
    return f"{RESULTS}/selection/{wildcards.recipe}/{wildcards.dataset}/seed{wildcards.seed}.csv"


def dataset_of(wildcards):
    plan.refuse_unknown(dataset=wildcards.dataset)
    return plan.datasets[wildcards.dataset]


def manifest_of(wildcards):
    return f"{DATA}/splits/{dataset_of(wildcards).name}.csv"


def broken_pictures(wildcards):
    """What to do about a picture that cannot be read, as copies of the data set say it."""
    return (plan.picture_cache_of(wildcards.dataset) or {}).get("broken", "stop")


def root_of(wildcards):
    return dataset_of(wildcards).root


def dataset_specification(wildcards):
    return dataset_of(wildcards).specification


def recall_cut_offs(wildcards):
    return dataset_specification(wildcards)["recall_at"]


def hierarchy_levels(wildcards):
    return dataset_specification(wildcards).get("levels", {})


def recorded(file):
    """Whether Snakemake knows how a file was made; one that is not there yet counts as known."""
    return not Path(file).is_file() or workflow.persistence.metadata(IOFile(str(file)))


def noticed(runs):
    """Runs with their ``metrics_file`` and ``code_today``; results of older code that nobody would notice are refused."""
    try:
        refuse_unnoticed(runs, [run["metrics_file"] for run in runs if not recorded(run["metrics_file"])])
    except ValueError as error:
        raise WorkflowError(str(error)) from None
    return runs


def runs_of_table(wildcards, input):
    """The runs behind a table, each with where it comes from."""
    entry = plan.table(wildcards.table)
    printed, shows_terms = entry.get("published"), entry.get("terms", False)
    listed = departures(printed["paper"], printed["table"]) if printed else []
    return noticed(
        [
            run
            | origin(plan, run, str(file), listed)
            | {"code_today": training_code(run["recipe"], run["dataset"])}
            | (terms_of(plan, run) if shows_terms else {})
            for run, file in zip(plan.runs_of(wildcards.table).to_dict("records"), input.metrics)
        ]
    )


def check_results(files, runs):
    """Refuse metrics of older code among the files of runs, each given as recipe and data set."""
    noticed(
        [
            {
                "metrics_file": str(file),
                "code_today": training_code(*run),
                "options": rebuilding_options(plan),
            }
            for file, run in zip(files, runs)
            if str(file).endswith(".json")
        ]
    )


def metrics_of_table(wildcards):
    """Files with the metrics of the runs behind a table, in the order of the runs."""
    plan.refuse_unknown(table=wildcards.table)
    runs = plan.runs_of(wildcards.table)[["recipe", "dataset", "seed"]]
    return [stored("metrics", *run) for run in runs.itertuples(index=False)]


def tables_of_family(family):
    """Tables of the sweeps in one file of ``params/sweeps``; read only where they are asked for."""
    return lambda wildcards: [
        f"{RESULTS}/tables/{name}{suffix}"
        for name, sweep in plan.sweeps.items()
        if sweep.family == family
        for suffix in (".csv", ".md", ".tex")
    ]


def table_files(wildcards):
    return {table: f"{RESULTS}/tables/{table}.csv" for table in plan.table_names}


def committed_reference(wildcards):
    """Committed numbers of this scale, if there are any."""
    path = f"results/reference/{plan.compared_as}.json"
    return ancient(path) if Path(path).is_file() else []


def committed_traces(wildcards):
    """Committed traces of this scale, if there are any."""
    path = f"results/reference/{plan.compared_as}_traces.json"
    return ancient(path) if Path(path).is_file() else []


def trace_files(wildcards):
    """Files of the traces of all recipes of this scale's tables, by recipe and data set."""
    return {trace_name(*run): f"{RESULTS}/traces/{run[0]}/{run[1]}.json" for run in traced(plan)}


def compared_traces(wildcards):
    """Files of the traces that there are committed ones of."""
    return trace_files(wildcards) if committed_traces(wildcards) else {}


def mutation_entry(wildcards):
    return mutations[wildcards.mutation]


def requests_of_mutation(wildcards):
    """What is traced to see a mutation."""
    try:
        return mutation_requests(plan, wildcards.mutation)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


def measured_settings():
    """Tables of this scale by the setting that `.ci/reference` has measured them under, and by name."""
    folders = sorted(Path("results").glob(f"{plan.compared_as}_torch*"))
    return {folder.name: {table: f"{folder}/tables/{table}.csv" for table in plan.table_names} for folder in folders}


def published_digest(wildcards):
    return plan.published_digest(wildcards.table)


def runs_of_trials(wildcards, input):
    """The runs that try the options of `params/fidelity`, without the files of their metrics."""
    runs = trial_runs(plan).to_dict("records")
    for column, files in (
        ("recipe", input.metrics),
        ("unchanged", input.metrics_unchanged),
    ):
        check_results(files, [(run[column], run["dataset"]) for run in runs])
    return runs


def metrics_of_trials(column):
    """Files with the metrics of the trials or of the recipes they change, in the order of the runs."""

    def paths(wildcards):
        runs = trial_runs(plan)[[column, "dataset", "seed"]]
        return [stored("metrics", *run) for run in runs.itertuples(index=False)]

    return paths


def overruled(wildcards):
    return overruled_trials(plan)


def stated_choices(wildcards):
    return {paper: choices(paper) for paper in papers()}


try:
    claims = read_claims(plan)
    claimed_runs = claim_runs(plan, claims)
except ValueError as error:
    raise WorkflowError(str(error)) from None


def evidence(side):
    """Files with what one side of all compared pairs has reached, in the order of the runs."""

    def path(run):
        kind = "attribution" if run["metric"] in ATTRIBUTIONS else "metrics"
        return stored(kind, run[side], run["dataset"], run["seed"])

    return lambda wildcards: [path(run) for run in claimed_runs]


def runs_of_claims(wildcards, input):
    """The runs that claims are held against, without the files of what they reached."""
    for side, files in (("changed", input.changed), ("baseline", input.baseline)):
        check_results(files, [(run[side], run["dataset"]) for run in claimed_runs])
    return claimed_runs


def copied_manifest(dataset):
    """Split of a data set whose pictures a training or an embedding reads: of the copies where there are to be any."""
    cache = plan.picture_cache_of(dataset)
    return f"{DATA}/pictures/{dataset}-{form_of(cache)}.csv" if cache else f"{DATA}/splits/{dataset}.csv"


def form_of(cache):
    """What tells copies of a data set's pictures from others."""
    return f"{cache['shorter_side_px']}px-{cache['encoding']}"


def copied_root(dataset):
    return f"{DATA}/pictures" if plan.picture_cache_of(dataset) else plan.datasets[dataset].root


def pictures_of(wildcards):
    dataset = dataset_of(wildcards).name
    if hasattr(wildcards, "recipe"):
        check_wanted(wildcards.recipe, dataset)
    return copied_manifest(dataset)


def pictures_root(wildcards):
    return copied_root(dataset_of(wildcards).name)


def strangers_pictures(wildcards):
    plan.refuse_unknown(recipe=wildcards.recipe, dataset=wildcards.dataset)
    strangers = plan.strangers(wildcards.recipe, wildcards.dataset)
    return copied_manifest(strangers.name) if strangers else []


def strangers_pictures_root(wildcards):
    strangers = plan.strangers(wildcards.recipe, wildcards.dataset)
    return copied_root(strangers.name) if strangers else ""


def strangers_super(wildcards):
    return plan.strangers_super(wildcards.recipe, wildcards.dataset)


try:
    figures = read_figures(plan)
except ValueError as error:
    raise WorkflowError(str(error)) from None


def files_of_figure(wildcards):
    """Files that a figure reads, in the order of its runs."""
    require_known(f"figures with data at scale {SCALE}", wildcards.figure, figures)
    runs = figure_runs(plan, figures[wildcards.figure])
    return [stored(run["reads"], run["recipe"], run["dataset"], run["seed"]) for run in runs]


def runs_of_figure(wildcards, input):
    """The runs that a figure reads, without their files."""
    runs = figure_runs(plan, figures[wildcards.figure])
    check_results(input, [(run["recipe"], run["dataset"]) for run in runs])
    return runs


def threads_of_figure(wildcards):
    """All cores for a measurement, so that nothing runs beside it."""
    return os.cpu_count() if figures[wildcards.figure].get("alone", False) else 1


def code_of_figure(wildcards):
    entry = figures[wildcards.figure]
    layouts = sorted({run["layout"] for run in figure_runs(plan, entry)})
    return code_digest(["lookalike.stages.figures:figures"], [wildcards.figure, entry.get("options", {}), layouts])


def longest_list(wildcards):
    """How long the list of episodes of a data set must be for every recipe of this scale."""
    sections = [plan.settings(recipe, wildcards.dataset, "segment")["segment"] for recipe in plan.recipe_names]
    asked = [section for section in sections if section]
    return {name: max(section[name] for section in asked) for name in ("shots", "episodes", "draws")}


def listed_episodes(wildcards):
    """The list of a job's recipe: queries of one class, or of two."""
    ways = plan.settings(wildcards.recipe, wildcards.dataset)["segment"]["ways"]
    return episodes_of(manifest_of(wildcards), ways)


def digest_of_episodes(wildcards):
    return f"{listed_episodes(wildcards)}.sha256"
