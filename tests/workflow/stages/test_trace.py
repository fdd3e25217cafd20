"""A trace is what is committed, on this machine as on any."""

import pytest
import torch

from lookalike.base.files import read_json
from lookalike.base.paths import project_root
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.regression import trace_difference
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.stages.trace import trace

COMMITTED = read_json(project_root() / "results" / "reference" / "ci" / "traces.json")


@pytest.fixture(scope="module")
def plan():
    return Plan({**read("params/config.yaml", Configuration).dump(), "scale": "ci"})


@pytest.mark.parametrize(
    ("recipe", "dataset"),
    [
        ("ci_query_gallery_untrained", "figurines_shop"),
        ("margin_diml", "figurines_few_birds"),
        ("sam_segment_birds", "figurines_scenes"),
    ],
)
def test_a_recipe_traces_as_committed_whatever_torch_was_seeded_with(plan, tmp_path, recipe, dataset):
    torch.manual_seed(12345)
    output, specification = tmp_path / "trace.json", plan.datasets[dataset].about
    trace(plan.settings(recipe, dataset), specification=specification, output=str(output))
    assert trace_difference(read_json(output), COMMITTED[f"{recipe}@{dataset}"]) == ""
    assert torch.get_default_dtype() == torch.float32


def test_a_trace_shows_a_cosine_from_the_second_step_on(plan, tmp_path):
    recipe, dataset = "margin_diml", "figurines_few_birds"
    settings, output = plan.settings(recipe, dataset), tmp_path / "trace.json"
    schedule = settings.train.schedule.model_copy(update={"decay": "cosine"})
    decayed = settings.model_copy(update={"train": settings.train.model_copy(update={"schedule": schedule})})
    trace(decayed, specification=plan.datasets[dataset].about, output=str(output))
    found, steady = (pairs["gradient/trunk"] for pairs in (read_json(output), COMMITTED[f"{recipe}@{dataset}"]))
    assert found[:2] == pytest.approx(steady[:2], rel=1e-6)  # the second follows from a step at full rates
    assert abs(found[2] / steady[2] - 1) > 1e-4


def test_a_trace_holds_losses_gradients_scores_and_metrics():
    found = COMMITTED["margin_diml@figurines_few_birds"]
    assert {"loss", "gradient/trunk", "gradient/head", "scores", "ranking", "metrics/R@1"} <= found.keys()
    assert (len(found["loss"]), len(found["gradient/trunk"]), len(found["scores"])) == (3, 3, 16)
    assert {"maps", "segmentation/mean_iou_mean"} <= COMMITTED["sam_segment_birds@figurines_scenes"].keys()
    assert "metrics/mAP_coarse" in COMMITTED["contextual@figurines_few_birds"]
    assert "metrics/rank1" in COMMITTED["pcb@figurines_people"]
