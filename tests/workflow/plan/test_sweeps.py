"""A sweep is a table with a row for every combination of its choices."""

import pytest

from lookalike.workflow.plan.plan import Plan
from projects import spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}

MAPPED = [f"tried_untrained_{name}" for name in ("whitened", "whitened_fifth", "relevant", "relevant_fifth")]
TRIVIAL = ["tried_chance", "tried_untrained", *MAPPED]  # below the rows of every sweep


@pytest.fixture
def sweep(params):
    """Write a sweep named ``tried`` over the recipe ``margin``, and plan with it at scale paper."""

    def write(axes, recipe="  recipe: margin\n"):
        text = f"tried:\n  title: tried\n{recipe}  axes: {axes}\n  datasets: [cub]\n  metrics: [R@1]\n"
        (params / "sweeps" / "own.yaml").write_text(text)
        return Plan({**MINI, "scale": "paper", "tables": ["tried"]})

    return write


def test_every_combination_of_two_axes_is_a_row_with_a_recipe(sweep):
    plan = sweep(
        "{margin: {key: train.loss.margin, values: [0.1, 0.2]}, size: {key: train.embedding.dim, values: [64, 128]}}"
    )
    runs = plan.runs_of("tried")
    assert list(runs["recipe"]) == ["tried_0_1_64", "tried_0_1_128", "tried_0_2_64", "tried_0_2_128", *TRIVIAL]
    assert runs["label"][0] == "margin = 0.1, size = 64"
    train = plan.deciding("tried_0_2_64", "cub")["train"]
    assert (train["loss"]["margin"], train["embedding"]["dim"], train["batch_size"]) == (0.2, 64, 112)


def test_a_named_choice_may_be_like_a_recipe_and_hold_more_where_another_axis_has_a_value(sweep):
    axes = """
    loss: {margin: {like: margin}, softmax: {like: softmax}}
    way:
      plain: {}
      other: {train: {batch_size: 64}, where: {loss: {softmax: {train: {batch_size: 32}}}}}"""
    plan = sweep(axes, recipe="")
    sizes = {
        point.name: plan.deciding(point.name, "cub")["train"]["batch_size"] for point in plan.sweeps["tried"].points
    }
    assert sizes == {
        "tried_margin_plain": 112,
        "tried_margin_other": 64,
        "tried_softmax_plain": 112,
        "tried_softmax_other": 32,
    }
    assert plan.deciding("tried_softmax_plain", "cub")["train"]["loss"]["name"] == "softmax"


def test_a_point_shares_the_runs_of_an_equal_recipe_and_of_an_equal_point(sweep):
    plan = sweep(
        "{truncation: {key: evaluate.scoring.truncation, values: [100, 7, 9]}}", recipe="  recipe: margin_diml\n"
    )
    assert plan.shared("evaluate", "tried_100", "cub") == "margin_diml"
    assert plan.shared("evaluate", "tried_7", "cub") == "tried_7"
    assert plan.shared("train", "tried_7", "cub") == plan.shared("train", "tried_9", "cub") == "margin"


def test_parts_that_cannot_be_combined_have_no_run_but_a_note_with_the_reason():
    plan = Plan({**MINI, "tables": ["grid"]})
    labels = set(plan.runs_of("grid")["label"])
    assert "margin, avsl, size = 64" in labels
    assert "contrastive, avsl, size = 64" not in labels
    notes = plan.table("grid").remarks
    (avsl,) = (note for note in notes if "'avsl' takes only margin, proxy_anchor" in note)
    assert ": avsl with contrastive, triplet_random, " in avsl
    assert avsl.count("avsl with") == avsl.count("contrastive,") == 1
    assert any(note.endswith("'sam' takes all but contextual: sam with contextual.") for note in notes)


def test_every_loss_stands_in_the_grid_or_is_said_to_be_missing():
    from lookalike.workflow.settings.sources.code import lookup

    losses = {point.at["loss"] for point in Plan({**MINI, "tables": ["grid"]}).sweeps["grid"].points}
    assert lookup("lookalike.losses", "LOSSES").keys() - losses == {
        "part_cross_entropy"
    }  # of stripes, not of one vector


def test_every_sweep_can_run_at_mini_and_at_the_papers_scale():
    for scale in ("mini", "paper"):
        plan = Plan({**MINI, "scale": scale})
        assert all(len(plan.runs_of(name)) for name in plan.sweeps)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            "{margin: {key: train.los.margin, values: [0.1]}}",
            r"recipe tried_0_1 on cub, train: unknown key 'los', did you",
        ),
        ("{loss: {odd: {train: {loss: {name: margn}}}}}", r"train\.loss\.name: unknown 'margn', did you mean 'margin'"),
        ("{loss: {odd: {like: margn}}}", r"own\.yaml, tried\.axes\.loss\.odd\.like: "),
        ("{size: {key: size, values: [1]}}", r"own\.yaml, tried\.axes\.size"),
        ("{size: {key: train.embedding.dim, values: []}}", r"own\.yaml, tried\.axes\.size\.values: \[\] should"),
        (
            "{size: {key: train.embedding.dim, values: [64, 32, 64]}}",
            r"axes\.size\.values: 64 stands twice",
        ),
        (
            "{size: {key: train.embedding.dim, value: [64]}}",
            r"axes\.size: unknown key 'value', did you mean 'values'\?",
        ),
        ("{size: {big: {trian: {}}}}", r"axes\.size\.big: unknown key 'trian', did you mean 'train'\?"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(sweep, axes, message):
    with pytest.raises(ValueError, match=message):
        _ = sweep(axes).runs


def test_a_recipe_that_does_not_exist_is_refused(sweep):
    with pytest.raises(ValueError, match=r"own\.yaml, tried\.recipe: unknown 'margn', did you mean 'margin'"):
        _ = sweep("{size: {key: train.embedding.dim, values: [64]}}", recipe="  recipe: margn\n").runs


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        (
            "margin",
            "{'64': {}}",
            r"own\.yaml, margin: the recipe of 64 would be named 'margin_64', as one of params/recipes is",
        ),
        (
            "tried",
            "{a b: {}, a-b: {}}",
            r"the recipe of a-b would be named 'tried_a_b', as one of params/sweeps/own\.yaml",
        ),
    ],
)
def test_a_point_may_not_take_the_name_of_a_recipe_or_of_another_point(params, name, choices, message):
    text = f"{name}:\n  title: t\n  recipe: margin\n  axes: {{size: {choices}}}\n  datasets: [cub]\n  metrics: [R@1]\n"
    (params / "sweeps" / "own.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        _ = Plan(MINI).sweeps


def test_a_name_that_stands_twice_is_refused(params):
    (params / "sweeps" / "own.yaml").write_text((params / "sweeps" / "grid.yaml").read_text())
    with pytest.raises(ValueError, match="a sweep named 'grid' exists already"):
        _ = Plan({**MINI, "tables": ["grid"]}).runs


def test_a_sweep_may_not_take_the_name_of_a_table(params):
    spoil(params / "sweeps" / "grid.yaml", "\ngrid:", "\navsl_1:")
    with pytest.raises(ValueError, match="a table named 'avsl_1' exists already"):
        _ = Plan({**MINI, "tables": ["avsl_1"]}).sweeps


def test_recipes_are_chosen_by_the_first_axis_alone(sweep):
    axes = "{size: {key: train.embedding.dim, values: [64]}, loss: {margin: {like: margin}}}"
    with pytest.raises(ValueError, match=r"tried\.axes\.loss\.margin\.like: only the first axis chooses recipes"):
        sweep(axes).sweeps["tried"].points  # noqa: B018


def printed_beside(plan, name):
    """Label and data set of the points beside which a number is printed, with paper, table and row."""
    return {
        (row.label, dataset): (point.table.paper, point.table.table, point.row.method)
        for row in plan.table(name).rows
        for dataset, point in row.prints.items()
    }


@pytest.mark.parametrize("scale", ["paper", "mini"])
def test_a_point_has_the_printed_numbers_of_the_row_that_is_stated_like_it_whatever_the_scale(scale):
    plan = Plan({**MINI, "scale": scale})
    assert printed_beside(plan, "avsl_momentum") == {
        ("gamma = 0.0", "cars"): ("avsl", "T3", "PA-AVSL (w/o MUS)"),
        ("gamma = 0.5", "cars"): ("avsl", "T1", "ProxyAnchor-AVSL"),
        ("gamma = 0.95", "cars"): ("avsl", "T3", "PA-AVSL (γ = 0.95)"),
    }
    # The paper's lambda is 0.8 on Cars alone; the loss alone stands in its Table 1.
    weights = printed_beside(plan, "contextual_weights")
    assert ("gamma = 0.1, lambda = 0.8", "cub") not in weights
    assert weights["gamma = 0.1, lambda = 0.8", "cars"] == ("contextual", "T2", "Contextual (Ours)")
    assert weights["gamma = 0.0, lambda = 1.0", "cub"] == ("contextual", "T1", "Lcontext")
    assert (
        len(printed_beside(plan, "grid")) == 48
    )  # 17 losses with and without matching, at three sizes three, 2 trained


STATED = "{table: {paper: diml, table: T1}, row: {method: Margin, setting: baseline}}"


def with_print(sweep, published):
    axes = "{margin: {key: train.loss.margin, values: [0.1, 0.3]}}"
    return sweep(axes, recipe=f"  recipe: margin\n  published: {{{published}}}\n")


def test_a_point_may_name_a_printed_row_that_is_stated_otherwise(sweep):
    plan = with_print(sweep, f"margin = 0.3: {STATED}")
    assert printed_beside(plan, "tried") == {("margin = 0.3", "cub"): ("diml", "T1", "Margin")}


@pytest.mark.parametrize(
    ("published", "message"),
    [
        (f"margin = 3: {STATED}", ".published: unknown 'margin = 3', did you mean 'margin = 0.3'"),
        (f"margin = 0.3: {STATED.replace('Margin', 'Margins')}", "published.row names .*'Margins'.*: 0 printed rows"),
        (f"margin = 0.3: {STATED.replace('T1', 'T9')}", "paper diml has no table 'T9'"),
    ],
)
def test_a_point_or_a_printed_row_that_is_not_there_is_refused(sweep, published, message):
    with pytest.raises(ValueError, match=f"own.yaml, tried.*{message}"):
        _ = with_print(sweep, published).sweeps
