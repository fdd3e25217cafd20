"""Every distinct job of a call is counted once."""

import pytest

from lookalike.command.costs.jobs import distinct_jobs, distinct_runs, job_counts, strangers_of
from lookalike.plan.plan import Plan

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


def by_hand(plan):
    """Trainings, embeddings and evaluations, told apart by their settings alone."""
    found = {"train": set(), "embed": set(), "evaluate": set()}
    for run in plan.runs.itertuples():
        for stage, keys in found.items():
            keys.add((str(plan.deciding(run.recipe, run.dataset, stage)), run.dataset, run.seed))
    return {stage: len(keys) for stage, keys in found.items()}


@pytest.mark.parametrize("tables", [["diml_1"], ["diml_1", "diml_2"], ["contextual_2", "contextual_10"]])
def test_results_that_runs_share_are_counted_once(tables):
    plan = Plan({**MINI, "tables": tables, "seeds": [0, 1]})
    counts = job_counts(plan)
    assert {stage: counts[stage] for stage in ("train", "embed", "evaluate")} == by_hand(plan)
    assert counts["train"] < counts["evaluate"]
    assert (counts["table"], counts["tables"]) == (len(tables), 1)


def test_a_run_that_two_tables_show_is_one_run():
    plan = Plan({**MINI, "tables": ["diml_1", "diml_3"]})
    assert len(plan.runs) > len(distinct_runs(plan)) == len({*distinct_runs(plan)})


def test_seeds_multiply_all_but_data_and_tables():
    one, three = (job_counts(Plan({**MINI, "tables": ["avsl_1"], "seeds": seeds})) for seeds in ([0], [0, 1, 2]))
    assert [three[stage] for stage in ("train", "embed", "evaluate")] == [
        3 * one[stage] for stage in ("train", "embed", "evaluate")
    ]
    others = ("download", "split", "table")
    assert [three[rule] for rule in others] == [one[rule] for rule in others] == [3, 3, 1]


def test_a_folder_that_is_read_in_place_is_split_but_not_downloaded():
    own = {"name": "mine", "datasets": {"street": {"layout": "folder", "folder": "street"}}}
    counts = job_counts(Plan({**MINI, **own}))
    assert (counts["download"], counts["split"]) == (0, 1)


def test_copies_of_pictures_are_counted_where_they_are_asked_for():
    cache = {"shorter_side_px": 64, "encoding": "png", "broken": "stop"}
    without, with_cache = (
        job_counts(Plan({**MINI, "tables": ["avsl_1"], "picture_cache": each})) for each in (None, cache)
    )
    assert (without["pictures"], with_cache["pictures"]) == (0, 3)


@pytest.mark.parametrize(("table", "found"), [("avsl_1", set()), ("contextual_robustness", {"figurines_strangers"})])
def test_strangers_are_counted_for_image_noise_alone(table, found):
    plan = Plan({**MINI, "tables": [table]})
    assert strangers_of(plan, distinct_jobs(plan)) == found
