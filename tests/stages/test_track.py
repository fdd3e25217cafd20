"""The runs behind a table are told in MLflow what it makes of them."""

import hashlib

from lookalike.parameters import canonical, read
from lookalike.plan import Plan
from lookalike.stages.track import track, uses_of

TABLE = """
tried:
  title: Tried
  datasets: [cub]
  metrics: [R@1]
  rows:
    - {label: Margin, recipe: margin}
    - {label: Margin + DIML, recipe: margin_diml}
"""


def plan_of(params, **values):
    (params / "tables" / "tried.yaml").write_text(TABLE)
    return Plan({**read("params/config.yaml", "config"), "tables": ["tried"], "seeds": [0, 1], **values})


def test_a_shared_training_is_told_of_every_row_that_uses_it(params):
    plan = plan_of(params)
    uses = {(use.identity["recipe"], use.identity["seed"]): use for use in uses_of(plan, "tried", lambda *run: "abc")}
    assert uses.keys() == {("margin", "0"), ("margin", "1"), ("margin_diml", "0"), ("margin_diml", "1")}
    assert uses["margin", "0"].cells == ["Margin/cub", "Margin + DIML/cub"]
    assert uses["margin", "0"].recipes == ["margin", "margin_diml"]
    assert uses["margin_diml", "1"].cells == ["Margin + DIML/cub"]
    assert uses["margin_diml", "1"].identity["scale"] == "mini"
    assert uses["margin_diml", "1"].identity["dataset"] == "figurines_birds"


def test_a_run_carries_the_digest_of_its_settings_and_all_of_them_as_parameters(params):
    plan = plan_of(params)
    evaluation = uses_of(plan, "tried", lambda *run: "abc")[-1]
    sections = plan.settings("margin_diml", "figurines_birds", "evaluate")
    digest = hashlib.sha256(canonical(sections).encode()).hexdigest()[:12]
    assert evaluation.tags == {"settings": digest, "code": "abc"}
    assert evaluation.parameters["train.loss.name"] == "margin"
    assert evaluation.parameters["evaluate.scoring.name"] == "structural_matching"


def test_nothing_is_touched_with_tracking_off(params):
    plan_of(params)
    track("tried", {**read("params/config.yaml", "config"), "tables": ["tried"], "tracking": "False"})
    assert not (params.parent / "mlflow.db").exists()
