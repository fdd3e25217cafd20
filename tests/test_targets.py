"""What docs/targets.md counts is what the plan says."""

import re

import pytest

from lookalike.plan.explanations import explanation_rows, read_explanations
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.plan import Plan
from lookalike.plan.rates import trials
from lookalike.plan.results import training_of
from lookalike.reports.claims import claim_runs, read_claims
from lookalike.reports.fidelity import trial_runs
from lookalike.reports.page import page_rows, read_page
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from projects import ROOT
from rows import trainings_of_targets

TARGETS = (ROOT / "docs" / "targets.md").read_text()


def plan_of(scale):
    return Plan({**read("params/config.yaml", Configuration).dump(), "scale": scale})


def rows(frame, recipe="recipe"):
    return list(frame[[recipe, "dataset", "seed"]].itertuples(index=False, name=None))


def runs_of(plan, target):
    """Runs that a target's own tables, figures or claims rest on."""
    if target in ("ablations", "grid"):
        return [
            run for name, sweep in plan.sweeps.items() if sweep.family == target for run in rows(plan.runs_of(name))
        ]
    if target == "figures":
        runs = [run for entry in read_figures(plan).values() for run in figure_runs(plan, entry)]
        return [(run["recipe"], run["dataset"], run["seed"]) for run in runs]
    if target == "claims":
        runs = claim_runs(plan, read_claims(plan))
        return [(run[side], run["dataset"], run["seed"]) for run in runs for side in ("changed", "baseline")]
    if target == "explanations":
        settings = read_explanations(plan)
        neutral = settings["neutral"]["recipe"], settings["neutral"]["seed"]
        rows_of = [(row["recipe"], row["dataset"], row["seed"]) for row in explanation_rows(plan, settings)]
        return rows_of + [(neutral[0], dataset, neutral[1]) for _, dataset, _ in rows_of]
    if target == "page":
        rows_of_page = page_rows(plan, read_page(plan))
        return [(row["recipe"], row["dataset"], row["seed"]) for row in rows_of_page]
    if target == "fidelity":
        return rows(trial_runs(plan)) + rows(trial_runs(plan), "unchanged")
    if target == "all":
        return [run for part in ("tables", "ablations", "figures") for run in runs_of(plan, part)]
    return rows(plan.runs)


@pytest.mark.parametrize("scale", ["mini", "ci"])
def test_a_target_trains_as_often_as_said(scale):
    said = trainings_of_targets(" --config scale=ci" if scale == "ci" else "")
    assert said.keys() == (
        {"regression"}
        if scale == "ci"
        else {"tables", "ablations", "figures", "all", "grid", "claims", "fidelity", "explanations", "page"}
    )
    plan = plan_of(scale)
    counted = {target: len({training_of(plan, *run) for run in runs_of(plan, target)}) for target in said}
    assert said == counted


def test_the_rates_of_a_scale_take_as_many_trials_as_said():
    said = re.search(
        r"^\| `snakemake --cores all rates --config scale=(\w+)` \| .* \| (\d+) short ones \|$", TARGETS, re.MULTILINE
    )
    assert len(trials(plan_of(said[1]))) == int(said[2])
