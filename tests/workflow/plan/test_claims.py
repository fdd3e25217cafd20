"""Claims are read and checked before any job, with the runs that they are held against."""

import pytest

from lookalike.workflow.plan.claims import claim_runs, read_claims
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.pages import Claim

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}


def planned(**values):
    plan = Plan({**MINI, **values})
    return claim_runs(plan, read_claims(plan))


def test_every_claim_is_tested_on_all_its_data_sets_at_mini_and_at_paper_scale():
    for scale in ("mini", "paper"):
        runs = planned(scale=scale)
        expected = {
            (name, dataset, pair.changed, pair.baseline)
            for name, claim in read_entries("params/claims.yaml", Claim).items()
            for dataset in claim.datasets
            for pair in claim.pairs
        }
        assert {(run.claim, run.published, run.changed, run.baseline) for run in runs} == expected
        assert len(runs) == 3 * len(expected)


def test_a_pair_stands_beside_only_on_data_where_its_baseline_differs_in_more_and_a_clean_one_stands():
    of_claim = [run for run in planned(scale="mini") if run.claim == "contextual_test" and run.seed == 0]
    assert {(run.dataset, run.baseline): (run.besides, run.decides) for run in of_claim} == {
        ("figurines_birds", "contrastive_224"): ("", True),
        ("figurines_birds", "contrastive_256"): ("", True),
        ("figurines_vehicles", "contrastive_224"): ("train.regulariser", False),
        ("figurines_vehicles", "contrastive_256"): ("", True),
    }


def test_seeds_are_those_of_the_call_if_there_are_two_and_else_three():
    assert {run.seed for run in planned(seeds=[4])} == {0, 1, 2}
    assert {run.seed for run in planned(seeds=[4, 7])} == {4, 7}


def test_a_claim_about_data_that_a_scale_does_not_have_is_kept_without_runs():
    plan = Plan({**MINI, "scale": "ci"})
    claims = read_claims(plan)
    assert "contextual_regulariser" in claims  # Cars and SOP
    runs = claim_runs(plan, claims)
    assert {run.dataset for run in runs} == {"figurines_few_birds", "figurines_people"}
    assert "contextual_regulariser" not in {run.claim for run in runs}


def test_a_claim_about_coarse_labels_that_a_data_set_lacks_is_left_out_before_any_job():
    plain = {"layout": "cub", "stands_for": "cub"}
    labelled = {**plain, "levels": {"coarse": "order"}}
    named = [{run.claim for run in planned(name="mine", datasets={"birds": about})} for about in (plain, labelled)]
    assert named[1] - named[0] == {"contextual_coarse"}


def test_own_pictures_that_stand_for_nothing_have_no_claims():
    datasets = {"pictures": {"layout": "folder", "folder": "x"}}
    assert planned(name="mine", datasets=datasets) == []


REFUSED = [
    (
        "{changed: margin_diml,",
        "{changed: margin_dilm,",
        r"params/claims\.yaml, diml_precision\.pairs\.13\.changed: unknown 'margin_dilm', did you mean 'margin_diml'",
    ),
    (
        "baseline: avsl_levels}",
        "baseline: avsl_level}",
        r"params/claims\.yaml, avsl_graph\.pairs\.0\.baseline: unknown 'avsl_level', did you mean 'avsl_levels'",
    ),
    (
        "datasets: [cub, cars, sop]",
        "datasets: [cub, carz, sop]",
        r"params/claims\.yaml, diml_precision\.datasets: unknown 'carz', did you mean 'cars'",
    ),
    ("metric: P@1", "metric: P@2", r"params/claims\.yaml, diml_precision\.metric: unknown 'P@2', did you mean 'R@2'"),
    ("direction: higher", "direction: up", r"params/claims\.yaml, diml_precision\.direction: 'up' is not allowed"),
    (
        "says: Matching",
        "said: Matching",
        r"params/claims\.yaml, diml_precision: unknown key 'said', did you mean 'says'",
    ),
    (
        "undisturbed: [robust_contextual,",
        "undisturbed: [robust_contextul,",
        r"params/claims\.yaml, contextual_label_noise\.pairs\.0\.undisturbed: unknown 'robust_contextul', did you mean",
    ),
    ("quantifier: every", "quantifier: all", r"params/claims\.yaml, diml_precision\.quantifier: 'all' is not allowed"),
    (
        "metric: P@1",
        "metric: train_R@1",
        r"diml_precision\.metric: train_R@1 needs embed\.training_pictures, which recipe contrastive_diml does not set",
    ),
    (
        "baseline: triplet_hinge}",
        "baseline: avsl_margin}",
        r"sam_coverage\.metric: coverage needs train\.method embedder or sam; recipe avsl_margin trains avsl",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_cannot_be_claimed_is_refused_with_file_key_and_what_would_be_right(params, old, new, message):
    text = (params / "claims.yaml").read_text()
    assert old in text
    (params / "claims.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        planned()


def test_what_has_to_have_learned_is_the_baseline_or_both_sides_undisturbed():
    learners = {(run.baseline, run.learners) for run in planned()}
    assert ("triplet_hinge", ("triplet_hinge",)) in learners
    assert ("robust_contrastive_labels_20", ("robust_contextual", "robust_contrastive")) in learners
    run = next(run for run in planned() if run.claim == "contextual_label_noise")
    assert run.read("started") == [
        ("metrics", "start_of_robust_contextual"),
        ("metrics", "start_of_robust_contrastive"),
    ]


def test_a_recipe_that_cannot_run_is_refused_when_it_stands_in_claims_only(params):
    recipes = params / "recipes" / "contextual.yaml"
    old = "contextual_seen: {like: contextual,"
    recipes.write_text(recipes.read_text().replace(old, f"{old} train: {{loss: {{kk: 3}}}},"))
    with pytest.raises(ValueError, match=r"recipe contextual_seen on figurines_birds, train\.loss: unknown 'kk'"):
        planned()
