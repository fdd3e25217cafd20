"""A trace is what is committed, on this machine as on any."""

import pytest
import torch

from lookalike.files import read_json
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.reports.regression import trace_difference
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.stages.trace import trace

COMMITTED = read_json(project_root() / "results" / "reference" / "ci_traces.json")


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
    output, specification = tmp_path / "trace.json", plan.datasets[dataset].specification
    trace(plan.deciding(recipe, dataset), specification=specification, output=str(output))
    assert trace_difference(read_json(output), COMMITTED[f"{recipe}@{dataset}"]) == ""
    assert torch.get_default_dtype() == torch.float32


def test_a_trace_holds_losses_gradients_scores_and_metrics():
    found = COMMITTED["margin_diml@figurines_few_birds"]
    assert {"loss", "gradient/trunk", "gradient/head", "scores", "ranking", "metrics/R@1"} <= found.keys()
    assert (len(found["loss"]), len(found["gradient/trunk"]), len(found["scores"])) == (3, 3, 16)
    assert {"maps", "segmentation/mean_iou_mean"} <= COMMITTED["sam_segment_birds@figurines_scenes"].keys()
    assert "metrics/mAP_coarse" in COMMITTED["contextual@figurines_few_birds"]
    assert "metrics/rank1" in COMMITTED["pcb@figurines_people"]
