"""Rates are searched per kind of recipe, as often for each, and lie over all recipes of the kind."""

import math

import pandas as pd
import pytest

from lookalike.workflow.plan import rates, scales
from lookalike.workflow.plan.claims import claim_runs, read_claims
from lookalike.workflow.plan.halving import Asked, Candidate, Design, asked_next, chosen
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import (
    COLUMNS,
    Kind,
    Tried,
    choose,
    chosen_rates,
    design_of,
    kind_of,
    least_trials,
    rates_layers,
    rates_note,
    searched,
    trained_as,
    trial_settings,
    tried,
    tried_as,
    twin_of,
)
from lookalike.workflow.report.tables.notes import notes_of, table_notes
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.training.optimiser import decay
from projects import ROOT
from trainings import section

RATES = {
    "trunk": [1e-4, 3e-4, 1e-3],
    "head": [1e-3, 3e-3],
    "epochs": 2,
    "batches_per_epoch": 9,
    "rungs": [{"seeds": [100], "survivors": 2}, {"seeds": [100, 101]}],
}
CONFIG = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
OVERLAY = {
    **CONFIG,
    "name": "own",
    "datasets": {"pictures": {"layout": "folder", "folder": "pictures"}},
    "tables": ["comparison"],
    "rates": {**RATES, "train": {"image": {"crop_px": 40}}},
}
LINE = "embedder,margin,compared_margin,pictures,0.0001,0.003,2,0.5,yes"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """File of the choices of the overlay `own`, in a project that has nothing else."""
    monkeypatch.setattr(rates, "project_root", lambda: tmp_path)
    path = tmp_path / "params" / "rates" / "own.csv"
    path.parent.mkdir(parents=True)
    return path


def write(path, *lines):
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")


def train(method="embedder", loss="margin"):
    return {
        "method": {"name": method},
        "loss": {"name": loss} if loss else None,
        "optimiser": {"algorithm": "adamw", "lr": {"trunk": 0.5, "head": 0.5, "proxies": 0.1}},
    }


def test_what_moves_rates_makes_a_kind_and_what_learns_nothing_is_of_none():
    plan = Plan(OVERLAY)
    margin = Kind("embedder", "margin", "", "average", "default", "linear", "512")
    assert kind_of(plan.settings("compared_margin", "pictures").train) == margin
    assert kind_of(plan.settings("untrained", "pictures").train) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"loss": {"name": "contextual", "lam": 1.0, "k": 4, "gamma": 0.1}}, {"weights": "lam 1, gamma 0.1"}),
        ({"loss": {"name": "margin", "level_weights": [1, 0.5]}}, {"weights": "level_weights 1/0.5"}),
        ({"method": {"name": "sam", "gamma": 0.2, "kind": "triplet"}}, {"weights": "gamma 0.2"}),
        (
            {"regulariser": {"gamma": 0.1, "target_similarity": 0.3, "combine": "add"}},
            {"weights": "regulariser add 0.1 0.3"},
        ),
        ({"projector": {"width": 12}}, {"head_form": "projector 12"}),
        ({"embedding": {"pooling": "stripes", "parts": 3, "dim": 9}}, {"head_form": "3 parts", "size": "9"}),
        ({"embedding": {"initialisation": "kaiming"}}, {"initialisation": "kaiming"}),
        ({"embedding": {"dim": None}}, {"size": "None"}),
    ],
)
def test_a_kind_states_weights_pooling_initialisation_head_and_size(changed, said):
    found = kind_of(section("embedder", changed))._asdict()
    assert {field: found[field] for field in said} == said
    usual = kind_of(section("embedder"))._asdict()
    concerned = {*said, "method", "loss", "pooling"}
    assert {field: found[field] for field in found if field not in concerned} == {
        field: usual[field] for field in usual if field not in concerned
    }


def test_each_kind_of_the_scales_tables_is_tried_on_one_recipe():
    found = tried(Plan(OVERLAY))
    assert len({each.kind for each in found}) == len({(each.recipe, each.dataset) for each in found}) == len(found)
    by_recipe = {each.recipe: each for each in found}
    assert by_recipe["compared_triplet_sam"].kind.method == "sam"
    assert by_recipe["compared_proxy_anchor_avsl"].has_own  # its graph
    assert not by_recipe["compared_margin"].has_own
    assert "compared_margin_diml" not in by_recipe  # matching at test time trains nothing of its own
    assert {each.half for each in found} == {""}


def test_each_half_of_the_training_classes_has_trials_of_its_own():
    of_one = tried(Plan(OVERLAY))
    crossed = tried(Plan(OVERLAY | {"halves": "crossed"}))
    assert crossed == [each._replace(half=half) for half in ("", "second") for each in of_one]


def test_ties_go_to_the_plain_kind_of_the_same_loss_and_network_or_to_the_one_most_like_it():
    found = {each.recipe: each for each in tried(Plan(CONFIG))}
    assert found["avsl_margin"].twin == found["avsl_baseline_margin"].kind
    assert found["avsl_baseline_margin"].twin is None
    unregularised = found["triplet_224"].twin  # which no table trains with this pooling
    assert unregularised in {each.kind for each in found.values()}
    assert unregularised[:3] == ("embedder", "triplet", "")


def test_a_kind_is_tried_on_the_stand_in_for_cub_where_it_runs_there():
    plan = Plan({**CONFIG, "tables": ["methods"]})
    by_kind = {each.kind[:2]: each for each in tried(plan)}  # though the call asks for `methods` alone
    assert by_kind["embedder", "margin"].dataset == "figurines_birds"
    assert by_kind["sam", "part_cross_entropy"].dataset == "figurines_people"


def test_kinds_of_every_claim_and_of_the_comparison_are_tried():
    plan = Plan(CONFIG)
    kinds = {each.kind for each in tried(plan)}
    runs = claim_runs(plan, read_claims(plan))
    claimed = {(recipe, run.dataset) for run in runs for recipe in (run.changed, run.baseline)}
    compared = {*plan.runs_of("methods")[["recipe", "dataset"]].itertuples(index=False, name=None)}
    for recipe, dataset in claimed | compared:
        kind = kind_of(plan.settings(recipe, plan.training_dataset(recipe, dataset)).train)
        assert kind is None or kind in kinds, recipe


def test_a_sweep_over_lambda_is_tried_at_three_of_its_points_and_others_inherit():
    found = tried(Plan(CONFIG))
    weights = {each.kind.weights for each in found if each.recipe.startswith("contextual_weights")}
    assert {each.split(",")[0] for each in weights} == {"lam 0", "lam 0.6", "lam 1"}
    assert not [each for each in found if each.recipe.startswith(("avsl_edges", "grid", "contextual_eps"))]
    few = {each.recipe for each in tried(Plan(OVERLAY))}
    assert not [recipe for recipe in few if recipe.startswith("contextual_weights")]  # none of its tables or figures


def test_a_trial_is_the_recipe_at_the_scale_with_its_rates_and_the_budget_of_trials():
    plan = Plan(OVERLAY)
    own = plan.deciding("compared_proxy_anchor", "pictures")["train"]
    settings = trial_settings(plan, "compared_proxy_anchor", "pictures")
    trial = trained_as(settings, Candidate(1e-4, 3e-3, 3.0), plan.rates)
    rates = {"trunk": 1e-4, "head": 3e-3, "proxies": 3 * own["optimiser"]["lr"]["proxies"]}
    assert trial["optimiser"]["lr"] == own["optimiser"]["lr"] | rates
    budget = {"epochs": 2, "batches_per_epoch": 9, "evaluate_every": 2, "patience": None, "collapse": None}
    assert trial["budget"] == {**budget, "metrics": ["R@1", "MAP@R"]}
    assert trial["image"] == {**own["image"], "crop_px": 40}
    changed = {"optimiser", "budget", "image"}
    assert {key: trial[key] for key in trial.keys() - changed} == {key: own[key] for key in own.keys() - changed}


def test_a_trial_has_a_cosine_of_its_own_over_its_own_budget():
    plan = Plan(CONFIG)
    settings = trial_settings(plan, "margin", "figurines_birds")
    train = checked(Train, trained_as(settings, Candidate(1e-4, 3e-3), plan.rates), "trial")
    epochs, batches = train.budget.epochs, train.budget.batches_per_epoch
    assert (epochs, batches) == (plan.rates.epochs, plan.rates.batches_per_epoch)
    # The loop tells it the share of the batches that this budget has.
    every = epochs * batches
    shares = [decay(train.schedule, batch // batches, batch / every) for batch in range(every)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx((math.pi / 2 / every) ** 2, rel=0.01)


def test_a_scale_that_does_not_say_how_to_search_is_refused():
    plan = Plan({**CONFIG, "scale": "paper", "tables": ["methods"]})
    for asked in (lambda: tried(plan), lambda: trial_settings(plan, "compared_margin", "cub")):
        with pytest.raises(ValueError, match=r"^params/scales/paper\.yaml: has no key rates; its rates are those"):
            asked()


def searched_scores(design, peak, *, has_own=True):
    """Scores of all trials of a search whose best rates are known, with a seed more in each rung."""
    scores = {}
    while asked := asked_next(scores, design, has_own=has_own):
        for each in asked:
            away = sum(abs(math.log(rate / best)) for rate, best in zip(each.candidate, peak, strict=True))
            scores[each] = [0.9 - away / 100, 0.8 - away / 100][: 1 + each.rung]
    return scores


def test_plain_kinds_choose_first_and_ties_go_to_their_pairs():
    design = design_of(Plan(OVERLAY).rates)
    plain = Tried(Kind("embedder", "margin"), "plain", "pictures", "", has_own=False, twin=None)
    changed = Tried(Kind("avsl", "margin"), "changed", "pictures", "", has_own=False, twin=plain.kind)
    scores = searched_scores(design, (3e-4, 1e-3, 1.0), has_own=False)
    tied = {asked: [0.5, 0.5] if asked.rung else each for asked, each in scores.items()}
    found = choose([changed, plain], [tied, scores], design)
    assert [*found["recipe"]] == ["changed"] * len(scores) + ["plain"] * len(scores)
    chosen = found[found["chosen"] != ""].set_index("recipe")
    assert {*chosen["trunk"]} == {3e-4} and {*chosen["head"]} == {1e-3}
    alone = choose([changed._replace(twin=None)], [tied], design)
    assert alone.loc[alone["chosen"] != "", "trunk"].item() == next(each for each in tied if each.rung).candidate.trunk


def test_a_kind_of_one_half_takes_no_pair_of_the_other():
    design = design_of(Plan(OVERLAY).rates)
    plain = Tried(Kind("embedder", "margin"), "plain", "pictures", "", has_own=False, twin=None)
    scores = [searched_scores(design, (trunk, 1e-3, 1.0), has_own=False) for trunk in (1e-4, 1e-3)]
    found = choose([plain, plain._replace(half="second")], scores, design)
    chosen = found[found["chosen"] != ""].set_index("half")["trunk"]
    assert chosen.to_dict() == {"": 1e-4, "second": 1e-3}


def test_what_was_chosen_lies_over_the_recipes_of_its_kind_and_over_no_other(file):
    before = Plan(OVERLAY)
    write(file, LINE)
    after = Plan(OVERLAY)
    for recipe in ("compared_margin", "compared_margin_diml"):
        lr = after.deciding(recipe, "pictures")["train"]["optimiser"]["lr"]
        assert (lr["trunk"], lr["head"]) == (1e-4, 3e-3)
        assert lr["proxies"] == before.deciding(recipe, "pictures")["train"]["optimiser"]["lr"]["proxies"]
    for recipe in ("compared_proxy_anchor_avsl", "compared_triplet", "untrained"):
        assert after.deciding(recipe, "pictures") == before.deciding(recipe, "pictures")


def test_a_table_says_that_its_rates_were_found_and_which_rows_have_those_of_another_kind(file):
    assert not [note for note in Plan(OVERLAY).table("comparison").remarks if "held out" in note]
    write(file, LINE, LINE.replace("margin", "proxy_anchor"))
    (note,) = [note for note in Plan(OVERLAY).table("comparison").remarks if "held out" in note]
    assert note == (
        "Rates of trunk and head: found for each kind (method, loss) on classes held out of the training half, among "
        "as many for all (params/rates/own.csv). Not tried, and so with the rates of another kind: method embedder for "
        "avsl in Margin-AVSL, ProxyAnchor-AVSL."
    )


def test_a_table_whose_kinds_were_all_tried_says_no_more(file):
    kinds = {each.kind[:2]: each for each in tried(Plan(OVERLAY))}
    write(
        file, *(f"{method},{loss},{kinds[method, loss].recipe},pictures,1e-4,3e-3,2,0.5,yes" for method, loss in kinds)
    )
    (note,) = [note for note in Plan(OVERLAY).table("comparison").remarks if "held out" in note]
    assert note.endswith("(params/rates/own.csv).")


def test_a_table_says_that_no_rates_were_found_where_they_are_to_be_searched(file):
    write(file)
    said = "Rates of trunk and head: the scale's, as none are searched yet (params/rates/own.csv)."
    assert said in Plan(OVERLAY).table("comparison").remarks
    assert not [note for note in Plan({**OVERLAY, "rates": None}).table("comparison").remarks if "Rates of" in note]


def test_rows_that_inherit_from_the_same_difference_are_told_together_and_many_in_short():
    usual = Kind("embedder", "margin", "", "average", "default", "linear", "64")
    small, regularised = usual._replace(size="16"), usual._replace(weights="regulariser add 0.1 0.3")
    rows = [*((label, small) for label in "abcde"), ("f", regularised), ("g", usual)]
    note = rates_note("mine", rows, [usual])
    assert note.endswith(": size 64 for 16 in a, b, c and 2 more; weights none for regulariser add 0.1 0.3 in f.")
    assert "(method, loss, weights, pooling, initialisation, head, size)" in note


def test_rates_that_were_chosen_leave_a_table_its_notes_on_single_data_sets():
    table = Plan(configuration(None, [ROOT / "params" / "overlays" / "birds.yaml"])).table("avsl_1")
    assert any("held out" in note for note in table.remarks)
    assert any("no single model" in note for note in table.notes["cub"])
    nothing_run = pd.DataFrame(
        columns=["n", "printed", "seeds", "departs", "label", "rests_on", "dataset", "stand_in", "metric", "mean"],
        dtype=str,
    )
    assert table_notes(table, nothing_run, "mini")[1:] == table.remarks
    assert notes_of(table, "cub") == table.notes["cub"]


def test_the_rates_of_a_trial_do_not_follow_from_what_was_chosen(file):
    recipe = "compared_proxy_anchor", "pictures"
    before = trial_settings(Plan(OVERLAY), *recipe)
    line = LINE.replace("margin", "proxy_anchor")
    file.write_text(f"{','.join([*COLUMNS, 'own'])}\n{line},3.0\n")
    assert Plan(OVERLAY).deciding(*recipe)["train"]["optimiser"] != before["optimiser"]
    assert trial_settings(Plan(OVERLAY), *recipe) == before


def test_a_kind_that_was_not_tried_takes_the_rates_of_its_loss_alone():
    chosen = {Kind("embedder", "margin"): Candidate(1.0, 2.0), Kind("sam", "triplet"): Candidate(3.0, 4.0)}
    (layer,) = rates_layers(train("sam", "margin"), chosen, "mine")
    laid = {"train": {"optimiser": {"lr": {"trunk": 1.0, "head": 2.0}}}}
    assert layer == ("params/rates/mine.csv, embedder, margin", laid)
    for without in (train("embedder", "triplet"), train(loss=None)):
        assert rates_layers(without, chosen, "mine") == []


def test_a_kind_takes_the_rates_of_itself_or_else_of_the_one_that_is_most_like_it():
    alike = Kind("embedder", "margin", "", "gem", "kaiming", "linear")
    small, large, other = (alike._replace(size=size) for size in ("8", "64", "9"))
    chosen = [Kind("embedder", "margin", "", "average", "default", "linear", "9"), small, large]
    assert tried_as(large, chosen) == large
    assert tried_as(other, chosen) == small  # the first of two that differ by the size alone
    assert tried_as(Kind("diml", *large[1:]), chosen) == large
    assert tried_as(Kind("embedder", "triplet", *large[2:]), chosen) is None


def test_of_kinds_that_are_as_much_alike_the_one_with_the_nearest_weights_is_taken():
    usual = Kind("embedder", "contextual", "", "gem", "kaiming", "linear", "64")
    tried = [usual._replace(weights=f"lam {lam}, gamma {gamma}") for gamma in (0.1, 0) for lam in (0, 0.6, 1)]
    for weights, nearest in (("lam 0.2, gamma 0.1", tried[0]), ("lam 0.9, gamma 0", tried[5]), ("", tried[0])):
        assert tried_as(usual._replace(weights=weights), tried) == nearest
    levels = [usual._replace(weights=f"level_weights {each}, final_weight 1") for each in ("1/4/4", "1/1/1")]
    assert tried_as(usual._replace(weights="level_weights 1/1/1, final_weight 0"), levels) == levels[1]


def test_a_factor_of_its_own_is_laid_over_the_rate_of_proxies():
    ((_, laid),) = rates_layers(train(), {Kind("embedder", "margin"): Candidate(1.0, 2.0, 3.0)}, "mine")
    assert laid["train"]["optimiser"]["lr"] == {"trunk": 1.0, "head": 2.0, "proxies": pytest.approx(0.3)}


def test_choices_are_those_of_a_half_whether_or_not_they_lie_on_an_edge(file):
    columns = [*COLUMNS, *Kind._fields[2:], "own", "half"]
    usual = "embedder,margin,compared_margin,pictures,{},0.003,2,0.5,{},,{},kaiming,linear,64,{},{}"
    lines = [
        usual.format("0.1", "", "gem", "1", "first"),
        usual.format("0.2", "edge", "gem", "3", "first"),
        usual.format("0.3", "yes", "average", "1", "first"),
        usual.format("0.4", "yes", "gem", "1", "second"),
    ]
    file.write_text("\n".join([",".join(columns), *lines]) + "\n")
    gem = Kind("embedder", "margin", "", "gem", "kaiming", "linear", "64")
    average = gem._replace(pooling="average")
    first = {gem: Candidate(0.2, 0.003, 3.0), average: Candidate(0.3, 0.003)}
    assert chosen_rates("own", "first") == first
    assert chosen_rates("own", "second") == {gem: Candidate(0.4, 0.003)}
    assert chosen_rates("own") == {}
    file.write_text("\n".join([",".join(columns), lines[1], lines[1]]) + "\n")
    with pytest.raises(ValueError, match=r"line 3: a second choice for embedder with margin, one is right$"):
        chosen_rates("own", "first")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("caf\u00e9,margin\n".encode("cp1252"), "is not UTF-8 text: .*; save it in UTF-8"),
        (",".join(COLUMNS).encode("utf-16"), "is not UTF-8 text: .*; save it in UTF-8"),
        (";".join(COLUMNS).encode(), "';' parts its cells; put a comma in place of each"),
        (f"{','.join(COLUMNS)}\n1,2\n".encode(), f", line 2: 2 cells, not the {len(COLUMNS)} of line 1"),
    ],
)
def test_rates_as_spreadsheets_save_them_are_refused_with_file_and_remedy(file, content, said):
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^\S*params/rates/own\.csv.*{said}"):
        chosen_rates("own")


@pytest.mark.parametrize(("peak", "said"), [(3e-4, "yes"), (10.0, "edge")])
def test_all_trials_of_a_search_are_rows_from_which_its_choice_is_read(file, peak, said):
    design = Design((1e-4, 3e-4, 1e-3), (1e-3, 3e-3, 1e-2), (2,))
    scores = searched_scores(design, (peak, 3e-3, 3.0))
    choice = chosen(scores, design, has_own=True)
    kind = Tried(kind_of(section("avsl")), "avsl", "pictures", "first", has_own=True, twin=None)
    pd.DataFrame(searched(kind, scores, choice)).to_csv(file, index=False, float_format="%.6g")
    assert chosen_rates("own", "first") == {kind.kind: choice.candidate}
    assert chosen_rates("own") == {}
    found = pd.read_csv(file, keep_default_na=False)
    assert len(found) == len(scores)
    (row,) = found[found["chosen"] != ""].to_dict("records")
    assert (row["chosen"], row["rung"], row["own"], row["seeds"]) == (said, 1, 3, 2)
    each = [float(score) for score in row["of_seeds"].split()]
    assert row["MAP@R"] == pytest.approx(sum(each) / 2, abs=1e-6)
    assert each == pytest.approx(scores[Asked(1, choice.candidate)], abs=1e-6)


def test_the_plain_twin_of_a_kind_has_its_loss_and_network_and_no_method_or_regulariser():
    levels = {"loss": {"level_weights": [1.0, 0.5, 1.0], "final_weight": 1.0}}
    proxies = kind_of(section("proxies"))
    assert twin_of(section("avsl", levels)) == proxies
    assert twin_of(section("diml", {"embedding": {"dim": 9}})) == kind_of(
        section("embedder", {"embedding": {"dim": 9}})
    )
    regularised = {"regulariser": {"gamma": 0.1, "target_similarity": 0.3, "combine": "add"}}
    assert twin_of(section("embedder", regularised)) == kind_of(section("embedder"))
    weighted = {"loss": {"name": "contextual", "lam": 0.5}}
    assert twin_of(section("embedder", weighted)) is None
    assert twin_of(section("embedder", {"loss": None})) is None


def test_a_committed_file_of_methods_and_losses_alone_is_read():
    chosen = chosen_rates("birds")
    assert chosen and all(kind == Kind(*kind[:2]) and candidate.own == 1 for kind, candidate in chosen.items())
    kinds = {kind_of(section("embedder")), kind_of(section("embedder", {"embedding": {"pooling": "max"}}))}
    assert {tried_as(kind, chosen) for kind in kinds} == {Kind("embedder", "margin")}


def test_a_scale_with_a_search_of_its_own_has_choices_of_its_own():
    own = Plan({**CONFIG, "scale": "small_squeezenet"})
    assert own.rates_of == "small_squeezenet"  # which is like `small`
    assert own.rates.train == Plan({**CONFIG, "scale": "small"}).rates.train


def test_the_choices_of_another_scale_are_taken_by_its_name(file, monkeypatch):
    write(file, LINE)
    monkeypatch.setattr(scales, "project_root", lambda: file.parents[2])
    longer = Plan({**OVERLAY, "name": "longer", "rates": "own"})
    assert longer.deciding("compared_margin", "pictures")["train"]["optimiser"]["lr"]["head"] == 3e-3
    assert not longer.rates  # and no trials of its own
    with pytest.raises(
        ValueError, match=r"^the overlay, rates \(choices below params/rates\): unknown 'owm', did you mean 'own'"
    ):
        Plan({**OVERLAY, "name": "longer", "rates": "owm"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINE.replace("0.0001", "fast")], r"own\.csv, line 2: trunk fast is no rate above 0$"),
        (["embedder,margin,compared_margin,pictures,0.1,-1,2,0.5,"], r"own\.csv, line 2: head -1 is no rate above 0$"),
        ([LINE, LINE], r"own\.csv, line 3: a second choice for embedder with margin, one is right$"),
    ],
)
def test_a_spoilt_file_is_named_with_its_line(file, lines, said):
    write(file, *lines)
    with pytest.raises(ValueError, match=said):
        chosen_rates("own")


@pytest.mark.parametrize(("text", "first"), [("method,loss\n", "recipe"), ("", "method")])
def test_a_file_without_a_column_is_named(file, text, first):
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"own\.csv: no column '{first}'; the target `rates` makes the file anew$"):
        chosen_rates("own")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({**RATES, "trunk": []}, r"rates\.trunk"),
        ({**RATES, "head": [0.0]}, r"rates\.head\.0"),
        ({**RATES, "rungs": RATES["rungs"][:1]}, r"rates\.rungs"),
        ({**RATES, "rungs": [{"survivors": 1}] * 2}, r"rates\.rungs\.0: 'seeds' is a required property"),
        ({**RATES, "epochs": 0}, r"rates\.epochs"),
        (
            {**RATES, "rungs": RATES["rungs"][::-1]},
            r"rates: rungs: no survivors of rung 1 of 2; all but the last",
        ),
        (
            {**RATES, "rungs": RATES["rungs"][:1] * 2},
            r"rates: rungs: unread survivors of rung 2 of 2; all but",
        ),
        ({"trunk": [1e-3], "head": [1e-3]}, r"rates: 'epochs' is a required property"),
    ],
)
def test_a_search_that_cannot_be_meant_is_refused(values, said):
    with pytest.raises(ValueError, match=rf"^the overlay, {said}"):
        Plan({**OVERLAY, "rates": values})


def test_a_call_says_where_chosen_rates_hold_in_place_of_those_that_an_overlay_states(file):
    stating = {**OVERLAY, "recipe": {"train": {"optimiser": {"lr": {"trunk": 1e-5, "proxies": 0.1}}}}}
    assert Plan(stating).notices == []  # nothing is chosen yet
    write(file, LINE)
    (notice,) = Plan(stating).notices
    assert notice.startswith("params/rates/own.csv: ") and notice.endswith("recipe.train.optimiser.lr (trunk)")
    assert Plan(OVERLAY).notices == []


@pytest.mark.parametrize(("scale", "trainings"), [("mini", 30), ("small", 19)])
def test_the_least_trials_of_a_kind_are_those_of_a_search_whose_best_lies_within_the_grid(scale, trainings):
    stated = Plan(configuration(scale, [])).rates
    best, scores, made = (stated.trunk[1], stated.head[1]), {}, set()
    while asked := asked_next(scores, design_of(stated), has_own=True):
        for each in asked:
            away = sum(abs(math.log(rate / peak)) for rate, peak in zip(each.candidate[:2], best, strict=True))
            seeds = stated.rungs[each.rung].seeds
            scores[each] = [-away] * len(seeds)
            made |= {(each.candidate, seed) for seed in seeds}
    assert least_trials(stated) == len(made) == trainings
