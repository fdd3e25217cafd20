"""Recipes lie in layers over each other, follow the sizes of a scale, and are refused where they cannot be meant."""

import inspect
import os
import shutil
import subprocess
import sys
from dataclasses import fields

import pytest

from lookalike.losses import LOSSES
from lookalike.losses.base import BatchLoss
from lookalike.methods import METHODS
from lookalike.methods.diml.matcher import MatcherOptions, StructuralMatcher
from lookalike.methods.diml.scoring import structural_matching
from lookalike.workflow.plan import scales
from lookalike.workflow.plan.checks import check_recipe, losses_of
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.recipes import StatedRecipe, Terms, sections_on
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import Layer, canonical, merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.scales import Scale
from lookalike.workflow.settings.sources import code
from lookalike.workflow.training.evaluation import REPRESENTATIONS, SCORINGS
from lookalike.workflow.training.methods import LEARNERS
from lookalike.workflow.training.optimiser import decay
from projects import ROOT, spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


@pytest.fixture(scope="module")
def mini():
    return Plan(MINI)


def test_a_recipe_can_take_several_times_as_long_as_its_scale_has_all_train(mini):
    budgets = {}
    for recipe in ("compared_proxy_anchor_twin", "compared_proxy_anchor_long"):
        budgets[recipe] = mini.settings(recipe, "figurines_birds").train.budget
    twin, long = budgets.values()
    assert (long.epochs, twin.epochs) == (5 * twin.epochs, 4)
    stated = mini.stated("compared_proxy_anchor_long", "figurines_birds")["train"]["budget"]
    assert (stated["epochs"], stated["times"]) == (50, 5)


@pytest.mark.parametrize("scale", ["mini", "small"])
def test_rates_fall_along_a_cosine_but_in_rows_about_the_course_of_a_training(scale):
    plan = Plan({"scale": scale, "seeds": [0], "archives": "data/archives", "tracking": False})
    dataset = next(iter(plan.datasets))
    assert plan.settings("contextual", dataset).train.schedule.decay == "cosine"
    schedule = plan.settings("contextual_course", dataset).train.schedule
    assert [decay(schedule, epoch, epoch / 4) for epoch in range(4)] == [1.0, 1.0, 1.0, 1.0]


def test_a_row_about_the_course_of_a_training_has_the_steps_of_its_paper_where_no_cosine_lies_over_them():
    plan = Plan({"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": False})
    schedule = plan.settings("contextual_course", "cub").train.schedule
    assert (schedule.decay, schedule.step_epochs, schedule.factor) == ("steps", 10, 0.3)


def test_figures_about_the_course_of_a_training_read_rows_without_a_cosine_and_their_tables_say_so(mini):
    figures = read_figures(mini)
    for name in ("contextual_2", "contextual_3", "contextual_14", "contextual_15", "avsl_9"):
        runs = [run for run in figure_runs(mini, figures[name]) if mini.settings(run.recipe, run.dataset).train.loss]
        assert {mini.settings(run.recipe, run.dataset).train.schedule.decay for run in runs} == {"steps"}
    histories = {name for name, each in figures.items() if any(run.reads == "history" for run in each.runs)}
    assert histories == {"contextual_3", "contextual_15", "avsl_9"}
    said = "About the course of a training, so that rates do not fall along a cosine: all rows."
    assert [name for name in mini.sweeps if said in mini.table(name).remarks] == [
        "contextual_course_cub",
        "contextual_seen_losses",
        "contextual_seen_losses_256",
        "contextual_seen",
        "contextual_course_sop",
    ]


def layered(*layers, published=None, scale=None):
    """The ``train`` section of these layers, over a smallest one."""
    least = {"train": {"method": {"name": "embedder"}, "embedding": {"dim": 512}, "sampler": {"name": "plain"}}}
    recipe = StatedRecipe("diml", tuple(Layer("", values) for values in (least, *layers)))
    scale = scale or {}
    terms = Terms((Layer("", scale.get("recipe", {})),), scale.get("embedding_dims", {}))
    return sections_on(recipe, published, terms)["train"]


def test_a_recipe_that_is_like_another_lies_over_it(params):
    new = "  first: {like: margin, train: {batch_size: 60}}\n  second: {like: first, train: {loss: {margin: 0.3}}}\n"
    spoil(params / "recipes" / "diml.yaml", "  margin: {", f"{new}  margin: {{")
    plan = Plan({**MINI, "scale": "paper"})
    margin, second = (plan.deciding(name, "cub")["train"] for name in ("margin", "second"))
    assert margin["batch_size"] == 112
    assert second == {**margin, "batch_size": 60, "loss": {"name": "margin", "margin": 0.3}}


def test_recipes_like_each_other_are_refused(params):
    spoil(params / "recipes" / "diml.yaml", "  margin: {", "  one: {like: two}\n  two: {like: one}\n  margin: {")
    with pytest.raises(ValueError, match=r"recipe 'one' is like itself: one -> two -> one"):
        Plan(MINI)


def test_values_for_a_data_set_lie_right_above_their_layer():
    general = {"train": {"batch_size": 1}, "per_dataset": {"sop": {"train": {"batch_size": 2}}}}
    own = {"train": {"batch_size": 3}}
    own_for_cars = {"per_dataset": {"cars": {"train": {"batch_size": 4}}}}
    found = {name: layered(general, published=name)["batch_size"] for name in ("cub", "sop", None)}
    assert found == {"cub": 1, "sop": 2, None: 1}
    found = {name: layered(general, own, own_for_cars, published=name)["batch_size"] for name in ("cub", "sop", "cars")}
    assert found == {"cub": 3, "sop": 3, "cars": 4}  # what a recipe says itself beats what it inherits for a data set


def test_a_scale_lies_over_every_layer():
    own = {"train": {"batch_size": 3}, "per_dataset": {"cub": {"train": {"batch_size": 4}}}}
    assert layered(own, published="cub", scale={"recipe": {"train": {"batch_size": 5}}})["batch_size"] == 5


@pytest.mark.parametrize(("stated", "here"), [(512, 64), (128, 32), (100, 100), (None, None)])
def test_embedding_and_projector_have_the_sizes_of_the_scale(stated, here):
    scale = {"embedding_dims": {512: 64, 128: 32, 2048: 256}}
    found = layered({"train": {"embedding": {"dim": stated}, "projector": {"width": 2048}}}, scale=scale)
    assert (found["embedding"]["dim"], found["projector"]["width"]) == (here, 256)
    found = layered({"train": {"embedding": {"dim": stated}, "projector": None}}, scale=scale)
    assert (found["embedding"]["dim"], found["projector"]) == (here, None)


@pytest.mark.parametrize(("k", "dim", "kept"), [(128, 64, 16), (512, 64, 64), (1, 64, 1), (128, 512, 128)])
def test_the_edges_of_a_node_keep_their_share_of_the_nodes(k, dim, kept):
    method = {"train": {"method": {"name": "avsl", "k": k}}}
    assert layered(method, scale={"embedding_dims": {512: dim}})["method"]["k"] == kept
    assert layered(method, scale={"recipe": {"train": {"embedding": {"dim": dim}}}})["method"]["k"] == kept


@pytest.mark.parametrize(("batch", "per_class", "cut"), [(64, 5, 60), (64, 4, 64), (3, 5, 3), (112, None, 112)])
def test_a_batch_is_cut_to_whole_groups(batch, per_class, cut):
    sampler = {"name": "m_per_class", "per_class": per_class} if per_class else {"name": "plain"}
    assert layered({"train": {"sampler": sampler, "batch_size": batch}})["batch_size"] == cut


def test_sizes_of_the_embedded_scale_reach_every_method(mini):
    avsl = mini.deciding("avsl_proxy_anchor", "figurines_birds")["train"]
    assert (avsl["embedding"]["dim"], avsl["method"]["k"]) == (64, 16)
    contextual = mini.deciding("contextual", "figurines_birds")["train"]
    assert (contextual["embedding"]["dim"], contextual["projector"]) == (64, {"width": 256})
    assert mini.deciding("sam_triplet", "figurines_birds")["train"]["batch_size"] == 60


def test_typed_settings_are_written_as_the_plan_has_them(mini):
    runs = mini.runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False)
    stated = [(mini.deciding(*run), mini.settings(*run)) for run in runs]
    assert len(stated) > 100
    for sections, recipe in stated:
        assert canonical(recipe.dump()) == canonical(sections)
        assert canonical(recipe.train.dump()) == canonical(sections["train"])


def test_a_scale_takes_recipe_and_sizes_of_the_one_it_is_like(monkeypatch):
    short = {
        "title": "short",
        "like": "mini",
        "datasets": {"figurines_birds": {"stands_for": "cub"}},
        "tables": ["avsl_1"],
    }
    short["recipe"] = {"train": {"budget": {"epochs": 2, "batches_per_epoch": 20}}}
    stated = checked(Scale, short, "short")
    monkeypatch.setattr(scales, "read", lambda path, kind: stated if "short" in path else read(path, kind))
    ours, theirs = (Plan({**MINI, "scale": scale}) for scale in ("short", "mini"))
    expected = merge(theirs.deciding("margin", "figurines_birds")["train"], short["recipe"]["train"])
    assert ours.deciding("margin", "figurines_birds")["train"] == expected
    assert (list(ours.datasets), ours.table_names) == (["figurines_birds"], ["avsl_1"])
    assert (ours.rates_of, ours.rates) == ("mini", theirs.rates)


def test_the_scale_of_the_gate_has_no_choices_that_could_move_its_numbers():
    short = Plan({**MINI, "scale": "ci"})
    assert (short.rates_of, short.rates) == ("ci", None)
    train = short.deciding("margin", "figurines_few_birds")["train"]
    assert train["backbone"]["weights"] is None
    assert not any("rates" in note for note in short.table("ci_recipes").notes)


# Recipe, what is laid over it, where the message points, and what it says.
OF_NO_TUPLES = sorted(name for name, loss in LOSSES.items() if not issubclass(loss, BatchLoss))
REFUSED = [
    (
        "margin",
        {"train": {"method": {"name": "embeder"}}},
        r"train\.method\.name",
        r"unknown 'embeder', did you mean 'embedder'\? Known: .*sam \(METHODS of src/lookalike/methods/__init__\.py\)$",
    ),
    *(
        ("margin", {"train": {"loss": {"boundary": value}}}, r"train\.loss\.boundary", rf"{said} is not a number$")
        for value, said in (("wide", "wide"), (True, "true"), (None, "null"), ([1.2], r"\[1\.2\]"))
    ),
    (
        "avsl_margin",
        {"train": {"method": {"variant": "grph"}}},
        r"train\.method\.variant",
        r"unknown 'grph', did you mean 'graph'\? Known: concat, graph, reliable_nodes, top$",
    ),
    (
        "avsl_margin",
        {"train": {"method": {"k": 2.5}}},
        r"train\.method\.k",
        r"2\.5 is not a whole number$",
    ),
    (
        "margin",
        {"train": {"method": {"side": 3}}},
        r"train\.method",
        r"unknown 'side'\. Known: none$",
    ),
    (
        "sam_triplet",
        {"train": {"method": {"momentum": 0.5}}},
        r"train\.method",
        r"unknown 'momentum', did you mean '\w+'\? Known: alpha, beta,",
    ),
    (
        "avsl_margin",
        {"train": {"method": {"gamma": 0.5}}},
        r"train\.method",
        r"unknown 'gamma', did you mean '\w+'\? Known: k, min_over, momentum,",
    ),
    (
        "diml_trained_margin",
        {"train": {"method": {"truncation": 3}}},
        r"train\.method",
        r"unknown 'truncation', did you mean '\w+'\? Known: global_vector, pooling, side$",
    ),
    (
        "margin_diml",
        {"evaluate": {"scoring": {"side": 3}}},
        r"evaluate\.scoring",
        r"unknown 'side', did you mean '\w+'\? Known: marginal, reg, score, solver, tolerance, truncation$",
    ),
    (
        "margin_diml",
        {"embed": {"representation": {"reg": 0.1}}},
        r"embed\.representation",
        r"unknown 'reg', did you mean '\w+'\? Known: global_vector, pooling, side$",
    ),
    (
        "avsl_margin",
        {"train": {"loss": {"name": "npair"}}},
        r"train\.loss\.name 'npair'",
        r"method 'avsl' takes only margin, proxy_anchor$",
    ),
    (
        "diml_trained_margin",
        {"train": {"loss": {"name": "proxy_anchor"}}},
        r"train\.loss\.name 'proxy_anchor'",
        r"method 'diml' takes only margin, multi_similarity$",
    ),
    (
        "sam_triplet",
        {"train": {"loss": {"name": "contextual"}}},
        r"train\.loss\.name 'contextual'",
        rf"method 'sam' takes all but {', '.join(OF_NO_TUPLES)}$",
    ),
    (
        "avsl_margin",
        {"train": {"loss": {"reg": 0.1}}},
        r"train\.loss",
        r"unknown 'reg', did you mean '\w+'\? Known: average, boundary, cutoff, final_weight, level_weights,",
    ),
    (
        "sam_triplet",
        {"train": {"loss": None}},
        r"train\.loss",
        r"method 'sam' needs a loss: .*angular, ",
    ),
    (
        "margin",
        {"evaluate": {"scoring": {"name": "graph"}}},
        r"evaluate\.scoring\.name",
        r"method 'embedder' is not compared by 'graph', but by cosine, structural_matching, shared_neighbours$",
    ),
    (
        "avsl_margin",
        {"evaluate": {"scoring": {"name": "cosine"}}},
        r"evaluate\.scoring\.name",
        r"method 'avsl' is not compared by 'cosine', but by graph, fixed_weights$",
    ),
    (
        "margin",
        {"evaluate": {"scoring": {"name": "structural_matching"}}},
        r"embed\.representation\.name",
        r"'structural_matching' needs 'locations', not 'own'$",
    ),
    (
        "avsl_margin",
        {"embed": {"representation": {"name": "locations"}}},
        r"embed\.representation\.name",
        r"method 'avsl' keeps its 'own', not 'locations'$",
    ),
    (
        "diml_trained_margin",
        {"embed": {"representation": {"name": "locations"}}},
        r"embed\.representation\.name",
        r"method 'diml' keeps its 'own', not 'locations'$",
    ),
    (
        "avsl_margin",
        {"train": {"method": {"k": 65}}},
        r"train\.method\.k",
        r"65 edges per node exceed the 64 nodes \(embedding\.dim\)$",
    ),
    (
        "avsl_margin",
        {"train": {"embedding": {"dim": None}}},
        r"train\.embedding\.dim",
        r"method 'avsl' needs a size, not null$",
    ),
    (
        "margin",
        {"train": {"embedding": {"pooling": "averag"}}},
        r"train\.embedding\.pooling",
        r"unknown 'averag', .* Known: average, .*stripes \(POOLINGS of src/lookalike/models/embedder\.py\)$",
    ),
    (
        "margin",
        {"train": {"optimiser": {"algorithm": "adamww"}}},
        r"train\.optimiser\.algorithm",
        r"unknown 'adamww', .*'adamw'\? Known: adam, adamw \(OPTIMISERS of "
        r"src/lookalike/workflow/training/optimiser\.py\)$",
    ),
    (
        "margin",
        {"train": {"budget": {"metrics": ["R@1", "mAPP"]}}},
        r"train\.budget\.metrics",
        r"unknown 'mAPP', did you mean 'mAP'\? Known: MAP@R, P@1, R@1, RP, mAP$",
    ),
    (
        "contextual",
        {"train": {"optimiser": {"lr": "no projector"}}},
        r"train\.optimiser\.lr",
        r"a projector needs a rate of its own, 'projector'$",
    ),
    (
        "sam_triplet",
        {"train": {"projector": {"width": 8}}},
        r"train\.projector",
        r"method 'sam' takes none, it must be null$",
    ),
    (
        "avsl_margin",
        {"train": {"regulariser": {"gamma": 0.1, "target_similarity": 0.3, "combine": "add"}}},
        r"train\.regulariser",
        r"method 'avsl' takes none, it must be null$",
    ),
]


@pytest.mark.parametrize(("recipe", "change", "where", "what"), REFUSED)
def test_a_recipe_that_cannot_be_meant_is_refused(mini, recipe, change, where, what):
    sections = mini.deciding(recipe, "figurines_birds")
    check_recipe(sections, "recipe r")
    spoiled = merge(sections, change)
    if spoiled["train"]["optimiser"]["lr"] == "no projector":
        rates = sections["train"]["optimiser"]["lr"]
        spoiled["train"]["optimiser"]["lr"] = {part: rate for part, rate in rates.items() if part != "projector"}
    with pytest.raises(ValueError, match=f"^recipe r, {where}: {what}"):
        check_recipe(spoiled, "recipe r")


NOISY = ("  margin: {train: {", "  margin: {train: {noise: {images: 0.1}, ")


def test_image_noise_takes_the_strangers_of_the_scale(params):
    spoil(params / "recipes" / "diml.yaml", *NOISY)
    plan = Plan(MINI)
    plan.check_run("margin", "figurines_birds")
    assert plan.strangers("margin", "figurines_birds").name == "figurines_strangers"
    assert plan.strangers("npair", "figurines_birds") is None


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("", r"recipe margin on figurines_birds, train\.noise\.images: scale mini names no data set as its strangers$"),
        (
            "strangers: figurines_birdz\n",
            r"params/scales/mini\.yaml, strangers: unknown 'figurines_birdz', did you mean 'figurines_birds'",
        ),
    ],
)
def test_image_noise_without_strangers_is_refused(params, named, message):
    spoil(params / "recipes" / "diml.yaml", *NOISY)
    spoil(params / "scales" / "mini.yaml", "strangers: figurines_strangers\n", named)
    with pytest.raises(ValueError, match=message):
        Plan(MINI).check_run("margin", "figurines_birds")


def test_reranking_needs_a_test_set_that_searches_itself(params):
    scoring = "evaluate: {scoring: {name: shared_neighbours, k: 4}}"
    spoil(params / "recipes" / "diml.yaml", "  margin: {", f"  margin: {{{scoring}, ")
    plan = Plan(MINI)
    plan.check_run("margin", "figurines_birds")
    message = r"recipe margin on figurines_shop, evaluate\.scoring\.name: 'shared_neighbours' needs a test set that"
    with pytest.raises(ValueError, match=message):
        plan.check_run("margin", "figurines_shop")


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("released", r"fidelity: 'released' is impossible for sam, no code was released; known: recommended, paper$"),
        ("releesed", r"sam\.yaml, recipes\.sam_triplet\.fidelity: 'releesed' is not allowed, did you mean 'released'"),
    ],
)
def test_levels_of_fidelity_that_a_paper_does_not_have_are_refused(params, level, message):
    spoil(params / "recipes" / "sam.yaml", "  sam_triplet:\n", f"  sam_triplet:\n    fidelity: {level}\n")
    with pytest.raises(ValueError, match=message):
        Plan(MINI).deciding("sam_triplet", "figurines_birds")


def test_what_is_known_of_methods_fits_their_code():
    assert LEARNERS.keys() == METHODS.keys()
    for name, method in METHODS.items():
        assert set(method.scorings) <= SCORINGS.keys()
        assert set(method.representations) <= REPRESENTATIONS.keys()
        assert LEARNERS[name].scoring is SCORINGS[method.scorings[0]]
        assert losses_of(name)
        for definition in (*method.options, *method.loss_options):
            assert code.constructor_arguments(definition)
    assert set(losses_of("sam")) == {name for name, loss in LOSSES.items() if issubclass(loss, BatchLoss)}
    matcher = code.constructor_arguments("lookalike.methods.diml.matcher:StructuralMatcher")
    located = code.constructor_arguments("lookalike.methods.diml.model:LocatedEmbedder")
    assert code.constructor_arguments("lookalike.methods.diml.model:DIML") == matcher | located
    scoring = code.constructor_arguments("lookalike.methods.diml.scoring:structural_matching")
    assert matcher == scoring - {"model", "query", "gallery", "search"}
    assert set(MatcherOptions.__annotations__) == matcher - {"truncation"}
    (truncation,) = (field.default for field in fields(StructuralMatcher) if field.name == "truncation")
    assert inspect.signature(structural_matching).parameters["truncation"].default == truncation


NEW_PARTS = [
    ("losses/pull", "loss: {name: pull}", "loss.name", "LOSSES of src/lookalike/losses/__init__.py"),
    (
        "sampling/miners/pull",
        "loss: {miner: pull}",
        "loss.miner",
        "MINERS of src/lookalike/sampling/miners/__init__.py",
    ),
    (
        "sampling/samplers/pull",
        "sampler: {name: pull}",
        "sampler.name",
        "SAMPLERS of src/lookalike/sampling/samplers/__init__.py",
    ),
    ("methods/pull", "method: {name: pull}", "method.name", "METHODS of src/lookalike/methods/__init__.py"),
]


@pytest.mark.parametrize(("file", "change", "key", "dictionary"), NEW_PARTS)
def test_a_part_that_no_dictionary_lists_is_told_the_line(params, file, change, key, dictionary):
    shutil.copytree(ROOT / "src", params.parent / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (params.parent / "src" / "lookalike" / f"{file}.py").write_text("class _Own: ...\n\n\nclass Pull(_Own): ...\n")
    recipe = f"recipes:\n  pull: {{like: compared_triplet, train: {{{change}}}}}\n"
    spoil(params / "recipes" / "comparison.yaml", "recipes:\n", recipe)
    program = f"from lookalike.workflow.plan.plan import Plan; Plan({MINI!r}).check_run('pull', 'figurines_birds')"
    own = {**os.environ, "PYTHONPATH": str(params.parent / "src")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=own, check=False)
    assert done.stderr.splitlines()[-1] == (
        f"ValueError: params/recipes/comparison.yaml: recipe pull on figurines_birds, train.{key}: 'pull' stands in "
        f'src/lookalike/{file}.py, but not in {dictionary}; import it there and add `"pull": Pull,`'
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("loss: {name: proxy}", r"train\.loss\.name: unknown 'proxy', .* \(LOSSES of src/lookalike/losses/__init__"),
        (
            "loss: {miner: hardst}",
            r"loss\.miner: unknown 'hardst', did you mean 'hardest'.* \(MINERS of src/lookalike/sam",
        ),
        ("sampler: {name: groupd}", r"sampler\.name: unknown 'groupd', did you mean 'grouped'.* \(SAMPLERS of src"),
    ],
)
def test_a_wrong_part_is_blamed_on_the_file_in_which_it_stands_and_on_no_other(params, change, message):
    wrong = f"recipes:\n  pull: {{like: compared_triplet, train: {{{change}}}}}\n  again: {{like: pull}}\n"
    spoil(params / "recipes" / "comparison.yaml", "recipes:\n", wrong)
    for name in ("pull", "again"):
        with pytest.raises(ValueError, match=rf"^params/recipes/comparison\.yaml: recipe {name} on .*{message}"):
            Plan(MINI).check_run(name, "figurines_birds")


def test_a_part_that_an_original_has_wrong_is_blamed_on_the_file_of_the_original(params):
    spoil(params / "recipes" / "diml.yaml", "{name: npair}", "{name: npiar}")
    spoil(params / "recipes" / "comparison.yaml", "recipes:\n", "recipes:\n  pull: {like: npair}\n")
    with pytest.raises(ValueError, match=r"^params/recipes/diml\.yaml: recipe pull on figurines_birds, train\.loss"):
        Plan(MINI).check_run("pull", "figurines_birds")
