"""Runs that read other data or weights under one name are told from each other."""

import pytest

from lookalike.plan.mixture import mixed_runs, reads_of, refuse_mixture
from lookalike.plan.plan import Plan

PLAIN = {"data": "cub", "weights": "start.safetensors"}
NOISY = {**PLAIN, "data": "cub with sop"}


def runs(*reads):
    return [
        {"reads": each, "metrics_file": f"results/small/metrics/a/cub/seed{place}.json", "options": " --config seeds=1"}
        for place, each in enumerate(reads)
    ]


def test_runs_of_one_split_and_one_file_of_weights_are_no_mixture():
    metrics = [{"data": "1", "weights": "2"}, {"data": "1", "weights": "2"}, {"data": "3", "weights": "2"}]
    assert mixed_runs(runs(PLAIN, PLAIN, NOISY), metrics) == []
    refuse_mixture(runs(PLAIN, PLAIN, NOISY), metrics)


def test_a_run_that_does_not_say_what_it_read_is_in_no_group():
    assert mixed_runs(runs(PLAIN, PLAIN), [{"data": "1"}, {}]) == []
    assert mixed_runs([{}, {}], [{"data": "1"}, {"data": "2"}]) == []


@pytest.mark.parametrize(("kind", "words"), [("data", "on another split of cub"), ("weights", "from other weights of")])
def test_the_fewer_runs_are_to_be_made_anew_by_a_line_that_can_be_typed(kind, words):
    metrics = [{"data": "1", "weights": "2", kind: digest} for digest in ("new", "old", "new")]
    assert mixed_runs(runs(PLAIN, PLAIN, PLAIN), metrics) == [[0, 2, 1]]
    line = "`snakemake results/small/metrics/a/cub/seed1.json --cores all --config seeds=1 --forcerun train`"
    with pytest.raises(
        ValueError, match=rf"seed1\.json was trained {words}.*\(old\) than .*seed0\.json \(new\)"
    ) as said:
        refuse_mixture(runs(PLAIN, PLAIN, PLAIN), metrics)
    assert line in str(said.value)
    assert "--config mixed=true" in str(said.value)


def test_a_run_reads_the_split_that_it_is_trained_on_and_the_weights_of_its_recipe():
    plan = Plan({"scale": "ci", "seeds": [0], "archives": "data/archives", "tracking": False})
    recipe, dataset = next(iter(plan.runs[["recipe", "dataset"]].itertuples(index=False, name=None)))
    read = reads_of(plan, recipe, dataset)
    assert read["data"].split(" with ")[0] in plan.datasets
    assert read["weights"] == str(plan.deciding(recipe, dataset, "train")["train"]["backbone"]["weights"])
