"""The runs behind a table are told in MLflow what it makes of them."""

import hashlib

from lookalike.plan.plan import Plan
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.settings.layers import canonical
from lookalike.stages.track import track
from lookalike.tracking.uses import uses_of, view_of

TABLE = """
tried:
  title: Tried
  datasets: [cub]
  metrics: [R@1, MAP@R]
  rows:
    - {label: Margin, recipe: margin}
    - {label: Margin again, recipe: margin}
    - {label: Margin + DIML, recipe: margin_diml}
"""


def plan_of(params, **values):
    (params / "tables" / "tried.yaml").write_text(TABLE)
    return Plan({**read("params/config.yaml", Configuration).dump(), "tables": ["tried"], "seeds": [0, 1], **values})


def finish(params, *runs):
    for recipe, seed in runs:
        path = params.parent / "results" / "mini" / "metrics" / recipe / "figurines_birds" / f"seed{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_finished_runs_are_told_of_the_rows_that_they_fill_and_not_of_those_that_share_their_training(params):
    plan = plan_of(params)
    finish(params, ("margin", 0), ("margin", 1), ("margin_diml", 1))
    uses = {(use.identity["recipe"], use.identity["seed"]): use for use in uses_of(plan, "tried")}
    assert uses.keys() == {("margin", "0"), ("margin", "1"), ("margin_diml", "1")}
    assert uses["margin", "0"].rows == ["Margin", "Margin again"]
    assert uses["margin_diml", "1"].rows == ["Margin + DIML"]
    assert uses["margin_diml", "1"].identity["dataset"] == "figurines_birds"
    assert uses["margin", "1"].rebuild.endswith(" results/mini/metrics/margin/figurines_birds/seed1.json")


def test_a_run_carries_the_digest_of_its_settings_and_all_of_them_as_parameters(params):
    plan = plan_of(params)
    finish(params, ("margin_diml", 0))
    [evaluation] = uses_of(plan, "tried")
    sections = plan.deciding("margin_diml", "figurines_birds", "evaluate")
    digest = hashlib.sha256(canonical(sections).encode()).hexdigest()[:12]
    assert evaluation.tags == {"settings": digest, "paper": "diml", "stands_for": "cub"}
    assert evaluation.parameters["train.loss.name"] == "margin"
    assert evaluation.parameters["evaluate.scoring.name"] == "structural_matching"


def test_a_table_is_listed_by_its_own_metrics_and_checkpoint(params):
    view = view_of(plan_of(params), "tried")
    assert (view.metrics, view.checkpoint) == (["R@1", "MAP@R"], "best")


def test_nothing_is_touched_with_tracking_off(params):
    plan_of(params)
    track("tried", {**read("params/config.yaml", Configuration).dump(), "tables": ["tried"], "tracking": "False"})
    assert not (params.parent / "mlflow.db").exists()
