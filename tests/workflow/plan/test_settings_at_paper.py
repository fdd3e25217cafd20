"""Settings of single recipes at scale `paper`, each with the place where it is published."""

import pytest
import torch

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.recipes import LearningRates, Schedule
from lookalike.workflow.training.optimiser import set_rates


@pytest.fixture(scope="module")
def paper():
    return Plan({"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": False})


def rates(train, epochs):
    """Learning rates of all parts in some epochs, counted from 0."""
    optimiser = torch.optim.SGD([{"params": [torch.zeros(1)], "name": part} for part in train["optimiser"]["lr"]], lr=1)
    found = []
    for epoch in epochs:
        set_rates(optimiser, LearningRates(**train["optimiser"]["lr"]), Schedule(**train["schedule"]), epoch, 0.0)
        found.append({group["name"]: group["lr"] for group in optimiser.param_groups})
    return found


@pytest.mark.parametrize("recipe", ["proxy_anchor_224", "proxy_nca_224"])
def test_rates_of_the_contextual_papers_proxy_losses_fall_during_the_warm_up(paper, recipe):
    # shared/methods/contextual.md, section 8: "the schedule steps at every epoch, warm-up included"
    train = paper.deciding(recipe, "cub")["train"]
    found = rates(train, [0, 9, 10, 19, 20])
    assert [each["trunk"] for each in found] == pytest.approx([0, 0, 4.8e-5, 4.8e-5, 1.44e-5])
    assert [each["projector"] for each in found] == pytest.approx([3.2e-4, 3.2e-4, 9.6e-5, 9.6e-5, 2.88e-5])
    on_sop = rates(paper.deciding(recipe, "sop")["train"], [0, 1, 20, 21])
    assert [each["head"] for each in on_sop] == pytest.approx([1.6e-4, 1.6e-4, 1.6e-4, 4.8e-5])


def test_the_warm_up_of_avsl_does_not_count_for_its_schedule(paper):
    # shared/methods/avsl.md, section 8: "the schedule does not advance"
    found = rates(paper.deciding("avsl_proxy_anchor", "cub")["train"], [4, 5, 14, 15])
    assert [each["trunk"] for each in found] == pytest.approx([0, 1e-5, 1e-5, 5e-6])


def test_the_proxy_anchor_baseline_of_avsl_runs_by_its_published_command_lines(paper):
    # shared/methods/avsl.md, section 8, last line of the table: "Baseline PA"
    found = {name: paper.deciding("avsl_baseline_proxy_anchor", name)["train"] for name in ("cub", "cars", "sop")}
    lr = {
        name: [train["optimiser"]["lr"][part] for part in ("trunk", "head", "proxies")] for name, train in found.items()
    }
    assert lr == {"cub": [1e-4, 1e-4, 1e-2], "cars": [1e-4, 1e-4, 1e-2], "sop": [6e-4, 6e-4, 6e-2]}
    steps = {name: (train["schedule"]["step_epochs"], train["schedule"]["factor"]) for name, train in found.items()}
    assert steps == {"cub": (5, 0.5), "cars": (10, 0.5), "sop": (15, 0.25)}
    norms = {name: train["backbone"]["batch_norm"] for name, train in found.items()}
    assert norms == {"cub": "frozen", "cars": "frozen", "sop": "trained"}
    assert [found[name]["budget"]["evaluate_every"] for name in ("cub", "cars", "sop")] == [1, 1, 5]


@pytest.mark.parametrize("recipe", ["avsl_margin", "avsl_baseline_margin"])
def test_margin_of_avsl_and_its_baseline_take_the_configuration_file(paper, recipe):
    # shared/methods/avsl.md, section 8: "config defaults"; issue 12, point 8: no warm-up
    for dataset in ("cub", "cars", "sop"):
        train = paper.deciding(recipe, dataset)["train"]
        assert train["optimiser"]["lr"] == {"trunk": 1e-5, "head": 1e-4, "proxies": 1e-4, "boundaries": 1e-2}
        found = rates(train, [0, 9, 10])
        assert [each["trunk"] for each in found] == pytest.approx([1e-5, 1e-5, 5e-6])
        assert [each["boundaries"] for each in found] == pytest.approx([1e-2, 1e-2, 5e-3])


def test_the_text_of_avsl_is_an_option_for_margin(paper):
    # issue 12, point 8: "the text's 1e-4 for everything with warm-up 5 is the option in fidelity"
    for recipe in ("fidelity_margin_rates_paper", "fidelity_baseline_margin_rates_paper"):
        train = paper.deciding(recipe, "cub")["train"]
        assert set(train["optimiser"]["lr"].values()) == {1e-4}
        assert rates(train, [4, 5, 14, 15])[1:] == [rates(train, [5])[0]] * 2 + [rates(train, [15])[0]]
        assert [each["trunk"] for each in rates(train, [4, 5, 14, 15])] == pytest.approx([0, 1e-4, 1e-4, 5e-5])


@pytest.mark.parametrize(
    "recipe", ["contextual_256", "contrastive_256", "contextual_l1_80", "roadmap_256_regularised_30"]
)
def test_rates_at_256_px_fall_three_times_and_stay(paper, recipe):
    # shared/methods/contextual.md, section 4: "x0.3 at epochs 15, 30, 45"
    found = rates(paper.deciding(recipe, "sop")["train"], [0, 14, 15, 30, 45, 60, 75])
    shares = [each["head"] / 4e-5 for each in found]
    assert shares == pytest.approx([1, 1, 0.3, 0.09, 0.027, 0.027, 0.027])


@pytest.mark.parametrize("recipe", ["proxy_anchor", "proxy_anchor_diml", "proxy_anchor_64", "proxy_anchor_512_diml"])
def test_proxy_anchor_beside_diml_is_that_of_its_authors(paper, recipe):
    # issue 12, point 7
    found = {name: paper.deciding(recipe, name)["train"] for name in ("cub", "cars", "sop")}
    for train in found.values():
        assert train["optimiser"]["algorithm"] == "adamw"
        assert (train["optimiser"]["weight_decay"], train["optimiser"]["loss_weight_decay"]) == (1e-4, 1e-4)
        assert (train["schedule"]["warm_up_epochs"], train["budget"]["epochs"]) == (5, 60)
    lr = {
        name: [train["optimiser"]["lr"][part] for part in ("trunk", "head", "proxies")] for name, train in found.items()
    }
    assert lr == {"cub": [1e-4, 1e-4, 1e-2], "cars": [1e-4, 1e-4, 1e-2], "sop": [6e-4, 6e-4, 6e-2]}
    steps = {name: (train["schedule"]["step_epochs"], train["schedule"]["factor"]) for name, train in found.items()}
    assert steps == {"cub": (5, 0.5), "cars": (10, 0.5), "sop": (20, 0.25)}
    norms = {name: train["backbone"]["batch_norm"] for name, train in found.items()}
    assert norms == {"cub": "frozen_statistics", "cars": "frozen_statistics", "sop": "trained"}


def weights(plan, recipe, dataset):
    loss = plan.deciding(recipe, dataset)["train"]["loss"]
    rest = 1 - loss["lam"] if loss["contrastive_weight"] is None else loss["contrastive_weight"]
    return pytest.approx((loss["lam"], rest, loss["gamma"]))


def test_contextual_tables_4_and_6_to_8_are_made_with_the_released_weights(paper):
    # shared/methods/contextual.md, section 9, "total loss, 256": 0.4 / 0.5 / 0.1
    for table in ("contextual_4", "contextual_6", "contextual_7", "contextual_8"):
        runs = paper.runs_of(table)
        for dataset in runs.loc[runs["label"] == "Contextual", "dataset"]:
            assert weights(paper, "contextual_256", dataset) == (0.4, 0.5, 0.1)
    assert weights(paper, "fidelity_contrastive_weight_paper", "cub") == (0.4, 0.6, 0.1)  # Eq. 6


def test_without_the_regulariser_the_rest_is_contrastive(paper):
    # Table 5 and Figs 14, 16 and 17: gamma 0, where Eq. 6 and the released code agree
    runs = paper.runs_of("contextual_5").query("not trivial")
    for recipe in runs["recipe"]:
        lam = paper.deciding(recipe, "sop")["train"]["loss"]["lam"]
        assert weights(paper, recipe, "sop") == (lam, 1 - lam, 0)
    for sweep in ("contextual_seen", "contextual_variants", "contextual_detached"):
        for run in paper.runs_of(sweep).query("not trivial").itertuples():
            lam = paper.deciding(run.recipe, run.dataset)["train"]["loss"]["lam"]
            assert weights(paper, run.recipe, run.dataset) == (lam, 1 - lam, 0)


@pytest.mark.parametrize("sweep", ["contextual_eps", "contextual_gamma", "contextual_target"])
def test_figure_13_belongs_to_the_set_up_of_256_px(paper, sweep):
    # issue 12, point 10; shared/methods/contextual.md, section 4: Figs 13-17 at 256
    settings = [
        paper.deciding(recipe, "sop")["train"] for recipe in paper.runs_of(sweep).query("not trivial")["recipe"]
    ]
    assert paper.deciding("contextual_256", "sop")["train"] in settings
    for train in settings:
        loss = train["loss"]
        assert (train["image"]["crop_px"], loss["lam"]) == (256, 0.4)
        assert loss["lam"] + loss["contrastive_weight"] + loss["gamma"] == pytest.approx(1)


def test_wrong_pictures_of_figure_6_are_the_birds_of_inaturalist(paper):
    # issue 12, point 10: only its bird classes, 1,486
    noisy = next(name for name in paper.runs_of("contextual_robustness")["recipe"] if "5_wrong_pictures" in name)
    strangers, number = paper.strangers(noisy, "cub"), paper.strangers_super(noisy, "cub")
    categories = strangers.about.super_categories
    assert (strangers.name, sorted(categories)[number]) == ("inat", "Birds")
    assert categories["Birds"] == 1486
    assert paper.strangers_super("robust_contextual", "cub") is None


def test_print_of_sam_table_4_stands_beside_mean_iou(paper):
    # shared/methods/sam.md, section 9, "Caption trap"
    published = paper.table("sam_4").published
    parts = ["fold0", "fold1", "fold2", "fold3", "mean"]
    assert published.read_as == {f"binary_iou_{part}": f"mean_iou_{part}" for part in parts}
    assert not paper.table("sam_5").published.read_as


def test_inaturalist_is_trained_on_copies_of_288_px(paper):
    # shared/datasets.md, section 6: "pre-resize every image to shorter side 288 and re-save as JPEG (default quality)"
    cache = paper.picture_cache_of("inat")
    assert (cache.shorter_side_px, cache.encoding) == (288, "jpeg")
    assert paper.runs_of("contextual_4")["comparable"].all()
