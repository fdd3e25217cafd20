"""Every disagreement of a paper with its released code is listed, and where it is an option it can be chosen."""

import inspect
import re
from dataclasses import replace
from itertools import combinations
from typing import get_args

import pytest
import yaml
from torch import nn

from lookalike.losses import LOSSES, build_loss
from lookalike.methods.avsl.loss import TERMS as AVSL_TERMS
from lookalike.methods.avsl.loss import AVSLLoss
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.loss import TERMS as DIML_TERMS
from lookalike.methods.diml.loss import DIMLLoss
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.model import DIML
from lookalike.methods.sam.loss import SimilarityMiningLoss
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.backbones import Tiny
from lookalike.models.embedder import Embedder
from lookalike.sampling.samplers import SAMPLERS, build_sampler
from lookalike.workflow.plan import fidelity
from lookalike.workflow.plan.checks import check_recipe
from lookalike.workflow.plan.recipes import Terms, read_recipes, sections_on
from lookalike.workflow.settings.fidelity import Disagreements, Fixed
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import canonical, merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Recipe
from lookalike.workflow.settings.scales import Scale
from projects import ROOT

STATED = {
    paper: yaml.load((ROOT / f"params/fidelity/{paper}.yaml").read_text(), yaml.CSafeLoader)
    for paper in fidelity.papers()
}
OPTIONS = [(paper, name) for paper, content in STATED.items() for name in content["options"]]
SETTINGS = [
    (paper, name, level, settings)
    for paper, name in OPTIONS
    for level, settings in {
        **STATED[paper]["options"][name]["set"],
        **STATED[paper]["options"][name].get("alternatives", {}),
    }.items()
]
RECIPES = read_recipes()
PUBLISHED = ("cub", "cars", "sop", "inshop", "inat", None)
TINY = {"name": "tiny", "weights": None, "batch_norm": "trained"}
CONTEXTUAL = {"k": 4, "eps": 0.05, "lam": 0.4, "gamma": 0.1}
CONTEXTUAL |= {"target_similarity": 0.25, "positive_margin": 0.75, "negative_margin": 0.6}
# Recipes as far as options look at them.
PROXY_ANCHOR = {"train": {"method": {"name": "avsl"}, "loss": {"name": "proxy_anchor"}}}
MARGIN = {"train": {"method": {"name": "avsl"}, "loss": {"name": "margin"}}}


def leaves(tree, path=()):
    """All values of nested settings, by their path."""
    found = {}
    for key, value in tree.items():
        found |= leaves(value, (*path, key)) if isinstance(value, dict) else {(*path, key): value}
    return found


def where(paper, name):
    content = STATED[paper]
    return merge(content.get("where", {}), content["options"][name].get("where", {}))


def on(settings, published):
    """Sections of one data set."""
    sections = {key: value for key, value in settings.items() if key != "per_dataset"}
    return merge(sections, settings.get("per_dataset", {}).get(published, {}))


def embedder():
    return Embedder(TINY, pooling="average", dim=8)


@pytest.mark.parametrize("paper", fidelity.papers())
def test_the_points_of_a_paper_follow_the_schema_and_stand_once(paper):
    content = fidelity.choices(paper)
    points = [point.point for point in (*content.options.values(), *content.fixed)]
    assert len(points) == len(set(points))


def test_every_row_of_the_notes_is_listed():
    # Rows of the tables of disagreements, plus what is told apart here: DIML's pooling and solver in training, and the
    # clamping of SAM's weight, which its table does not hold; plus what the reading of the settings added; plus the
    # size of AVSL's statistic, which a measurement of ours asks about, the rule of the mAP of CUHK03-NP, and the
    # contextual paper's two gradients.
    counts = {paper: len(content["options"]) + len(content["fixed"]) for paper, content in STATED.items()}
    assert counts == {"avsl": 39 + 4 + 1, "diml": 25 + 2 + 2, "contextual": 38 + 8 + 1, "sam": 14 + 1 + 6 + 1}


def test_names_of_options_are_unique_among_all_papers():
    names = [name for _, name in OPTIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda content: content["options"]["ties"].update(because="misprint"), "unknown key 'because'"),
        (lambda content: content["fixed"][0].update(set={"recommended": {}}), "unknown key 'set'"),
        (lambda content: content["fixed"][0].update(because="taste"), "'taste' is not allowed"),
        (lambda content: content["options"]["min_over"]["set"].update(paper={}), "min_over"),
        (lambda content: content.update(released=False), "null"),
        (lambda content: content["options"]["ties"].update(alternatives={"paper": {}}), "alternatives"),
        (lambda content: content["options"]["ties"]["set"].pop("recommended"), "recommended"),
        (lambda content: content["options"]["ties"]["set"].update(paper={"training": {}}), "unknown key 'training'"),
    ],
)
def test_a_misprint_is_no_option_and_other_mistakes_are_refused_too(spoil, message):
    content = read("params/fidelity/avsl.yaml", Disagreements).dump()
    spoil(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        checked(Disagreements, content, "avsl.yaml")


def test_reasons_are_those_of_the_schema():
    assert tuple(fidelity.REASONS) == get_args(Fixed.model_fields["because"].annotation)
    assert {point["because"] for content in STATED.values() for point in content["fixed"]} == set(fidelity.REASONS)


@pytest.mark.parametrize("paper", STATED)
def test_where_we_choose_otherwise_than_the_released_code_rows_are_marked(paper):
    for name, option in STATED[paper]["options"].items():
        chosen = option.get("set", {})
        assert "departs" in option or chosen.get("released", chosen.get("recommended")) == chosen.get("recommended"), (
            name
        )


@pytest.mark.parametrize(("paper", "name", "level", "settings"), SETTINGS)
def test_settings_of_options_are_accepted_by_what_they_set(paper, name, level, settings):
    concerned = where(paper, name)
    method = concerned.get("train", {}).get("method", {}).get("name")
    for published in (None, *settings.get("per_dataset", {})):
        trial = on(settings, published)
        train, loss = trial.get("train", {}), concerned.get("train", {}).get("loss", {}).get("name")
        if "method" in train:
            options = dict(train["method"])
            if method == "avsl":
                AVSL(Tiny(), ("stage1", "stage2", "stage3"), 8, 2, image_size=56, **options)
            elif method == "diml":
                DIML(embedder(), "trunk", **options)
            else:
                mining = {"gamma", "form", "warm_up_epochs", "images_per_tuple", "kind"} & options.keys()
                SimilarityMiningLoss(
                    build_loss("triplet", {}, classes=3, embedding_dim=8), **{key: options.pop(key) for key in mining}
                )
                SimilarityAttention(nn.Identity(), nn.Identity(), **options)
        if "loss" in train:
            if method == "avsl":
                # those that concern both losses would have to fit both
                for kind in [loss] if loss else AVSL_TERMS:
                    AVSLLoss(kind, 3, embedding_dim=8, **train["loss"])
            elif method == "diml":
                for kind in DIML_TERMS:
                    DIMLLoss(kind, 3, **train["loss"])
            else:
                needed = CONTEXTUAL if loss == "contextual" else {}
                build_loss(loss, {**needed, **train["loss"]}, classes=3, embedding_dim=8)
        if "sampler" in train:
            options = {"per_class": 2, **train["sampler"]}
            build_sampler("grouped", options, labels=[0, 0, 1, 1, 2, 2], batch_size=4, seed=0, batches=None)
        if options := trial.get("embed", {}).get("representation"):
            DIML(embedder(), "trunk", **options)
        if options := trial.get("evaluate", {}).get("scoring"):
            StructuralMatcher(**options)
        # All else is described by the schema of recipes, which leaves open what the parts above take.
        complete = sections_on(RECIPES["margin"], published, Terms())
        checked(Recipe, merge(complete, trial), f"{name} {level}")


@pytest.mark.parametrize("trial", fidelity.trials(), ids=lambda trial: f"{trial.option}-{trial.level}")
def test_trials_change_the_recipe_they_are_tried_on(trial):
    assert RECIPES[trial.recipe].paper == trial.paper
    unchanged = [sections_on(RECIPES[trial.recipe], published, Terms()) for published in PUBLISHED]
    changed = [sections_on(RECIPES[trial.name], published, Terms()) for published in PUBLISHED]
    assert unchanged != changed
    for published, sections in zip(PUBLISHED, changed, strict=True):
        assert leaves(where(trial.paper, trial.option)).items() <= leaves(sections).items()
        check_recipe(sections, f"{trial.option} {trial.level} on {published}")


def defaults(sections, path):
    """Values that the definitions behind a key take without it."""
    (stage, part, key), method = path, sections["train"]["method"]["name"]
    loss = sections["train"]["loss"]["name"]
    behind = {
        "method": {"avsl": [AVSL], "diml": [DIML], "sam": [SimilarityAttention, SimilarityMiningLoss]},
        "loss": {"avsl": [AVSLLoss, AVSL_TERMS.get(loss)], "diml": [Matching, DIML_TERMS.get(loss)]},
    }
    definitions = {
        ("train", "method"): behind["method"].get(method, []),
        ("train", "loss"): behind["loss"].get(method) or [LOSSES.get(loss)],
        ("train", "sampler"): [SAMPLERS[sections["train"]["sampler"]["name"]]],
        ("embed", "representation"): [DIML],
        ("evaluate", "scoring"): [DIML],
    }[stage, part]
    signatures = [inspect.signature(definition).parameters for definition in definitions]
    return [parameters[key].default for parameters in signatures if key in parameters]


@pytest.mark.parametrize("name", sorted({trial.recipe for trial in fidelity.trials()}))
def test_the_recommended_level_is_what_recipes_do_without_it(name):
    for published in PUBLISHED:
        sections = sections_on(RECIPES[name], published, Terms())
        stated = leaves(sections)
        recommended = on(fidelity.overrides(RECIPES[name].paper, "recommended", sections), published)
        for path, value in leaves(recommended).items():
            if path in stated:
                assert stated[path] == value, path
            else:
                assert defaults(sections, path) == [value], path


def test_a_level_that_is_not_stated_falls_back_to_recommended():
    paper, released = (fidelity.overrides("avsl", level)["train"]["method"] for level in ("paper", "released"))
    common = {"statistic": "absolute", "min_over": "row"}
    assert paper == {"sigmoid_scale": 1.0, "ties": "shared", **common}
    assert released == {"sigmoid_scale": 10.0, "ties": "first", **common}


@pytest.mark.parametrize(
    ("paper", "name", "level"),
    [
        (*option, level)
        for option in OPTIONS
        for level in fidelity.LEVELS
        if level != "released" or STATED[option[0]]["released"]
    ],
)
def test_a_level_holds_what_each_option_says_of_it(paper, name, level):
    stated = STATED[paper]["options"][name]["set"]
    expected = stated.get(level, stated["recommended"])
    concerned = where(paper, name)
    assert leaves(expected).items() <= leaves(fidelity.overrides(paper, level, concerned)).items()


def test_released_is_refused_where_no_code_was_released():
    with pytest.raises(ValueError, match=r"'released' is impossible for sam, no code was released"):
        fidelity.overrides("sam", "released")


def test_a_silent_paper_takes_what_is_recommended():
    assert fidelity.overrides("sam", "paper") == fidelity.overrides("sam", "recommended")


def test_unknown_levels_and_papers_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"fidelity of avsl: unknown 'exact', .* Known: paper, recommended, released"):
        fidelity.overrides("avsl", "exact")
    with pytest.raises(
        ValueError,
        match=r"fidelity, paper: unknown 'comparison', .* Known: avsl, contextual, diml, sam",
    ):
        fidelity.overrides("comparison", "paper")


def test_options_of_another_loss_or_method_are_left_out():
    assert "average" not in fidelity.overrides("avsl", "paper", PROXY_ANCHOR)["train"]["loss"]
    assert fidelity.overrides("avsl", "paper", MARGIN)["train"]["loss"]["average"] == "separate"
    assert fidelity.overrides("avsl", "paper", {"train": {"method": {"name": "embedder"}}}) == {}


def test_a_recipe_at_a_level_keeps_all_else():
    unchanged = sections_on(RECIPES["avsl_margin"], "cars", Terms())
    changed = sections_on(replace(RECIPES["avsl_margin"], level="paper"), "cars", Terms())
    assert changed["train"]["loss"]["average"] == "separate"
    differing = {path for path, value in leaves(changed).items() if leaves(unchanged)[path] != value}
    stated = {path for _, _, _, settings in SETTINGS for path in leaves(settings)}
    assert differing <= stated


@pytest.mark.parametrize("paper", fidelity.papers())
def test_options_that_can_meet_in_a_recipe_set_different_keys(paper):
    options = STATED[paper]["options"]
    for first, second in combinations(options, 2):
        needed = leaves(where(paper, first)), leaves(where(paper, second))
        if any(needed[0][path] != needed[1][path] for path in needed[0].keys() & needed[1].keys()):
            continue  # no recipe has both
        keys = [
            {path for settings in options[name]["set"].values() for path in leaves(settings)}
            for name in (first, second)
        ]
        assert not keys[0] & keys[1], (first, second)


def test_trials_are_all_choices_but_the_recommended_ones():
    expected = set()
    for paper, name, level, settings in SETTINGS:
        option = STATED[paper]["options"][name]
        recipe = option.get("recipe", STATED[paper]["recipe"])
        if settings != option["set"]["recommended"]:
            expected.add((paper, name, level, recipe, canonical(settings)))
    found = fidelity.trials()
    assert {(*list(vars(trial).values())[:4], canonical(trial.settings.dump())) for trial in found} == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize(("paper", "name"), OPTIONS)
def test_every_option_has_something_to_choose(paper, name):
    option = STATED[paper]["options"][name]
    choices = {**option["set"], **option.get("alternatives", {})}
    assert any(settings != option["set"]["recommended"] for settings in choices.values())


def test_paper_and_code_that_choose_alike_are_tried_once_under_both_names(params):
    path = params / "fidelity" / "avsl.yaml"
    text = path.read_text()
    stated = "paper: {train: {method: {ties: shared}}}"
    assert stated in text
    path.write_text(text.replace(stated, f"{stated}\n      {stated.replace('paper', 'released')}"))
    assert [trial.level for trial in fidelity.trials() if trial.option == "ties"] == ["paper_released"]


def test_a_trial_is_overruled_where_the_scale_sets_all_that_it_tries():
    trials = {trial.option: trial for trial in fidelity.trials()}
    mini = read("params/scales/mini.yaml", Scale).dump()["recipe"]
    assert trials["learning_rates"].is_overruled(mini)
    assert trials["trunk_rate"].is_overruled(mini)
    assert not trials["sigmoid_scale"].is_overruled(mini)
    assert not trials["learning_rates"].is_overruled({})
    assert not trials["learning_rates"].is_overruled({"train": {"optimiser": {"lr": {"trunk": 1e-4}}}})
