"""Seeds train on either half of the classes where a scale crosses them, and are tested on the other."""

from pathlib import Path
from types import SimpleNamespace as Names

import numpy as np
import pandas as pd
import pytest

from lookalike.workflow.data.splits import second_half
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.needs import check_batches
from lookalike.workflow.plan.plan import HALVES, Plan
from lookalike.workflow.plan.rates import COLUMNS
from lookalike.workflow.plan.scales import half_of_seed, of_half
from lookalike.workflow.settings.call import configuration
from projects import OVERLAYS, ROOT

SCALES = sorted(path.stem for path in (ROOT / "params" / "scales").glob("*.yaml"))
CI = {"scale": "ci", "archives": "data/archives", "tracking": False, "seeds": [0]}
CACHE = {"shorter_side_px": 48, "encoding": "png", "broken": "stop"}


def crossed(of: str | Path) -> Plan:
    scale, overlays = (of, []) if isinstance(of, str) else (None, [of])
    return Plan({**configuration(scale, overlays), "halves": "crossed"})


def job(seed, dataset="figurines_few_birds"):
    return Names(recipe="contrastive", dataset=dataset, seed=str(seed))


def split_of(dataset):
    """A split of so many classes as are known of a data set, two pictures of each."""
    counts = dataset.about.counts or {}
    selected = dataset.about.classes_by_role or {}
    sizes = {"train": 4, "test": 3} | {role: count.classes for role, count in counts if count and count.classes}
    first = {"train": 1, "test": 1 + sizes["train"]}
    ids = {role: selected.get(role, [first[role], first[role] + sizes[role] - 1]) for role in first}
    labels = [(role, label) for role, (low, high) in ids.items() for label in range(low, high + 1)]
    rows = [{"path": f"{label}-{place}", "label": label, "role": role} for role, label in labels for place in "ab"]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("of", [*SCALES, *OVERLAYS], ids=lambda of: of if isinstance(of, str) else of.stem)
def test_no_test_class_of_a_seed_is_among_its_training_classes(of):
    plan = crossed(of)
    with_halves = [name for name in plan.datasets if len(plan.halves_of(name)) > 1]
    for name in with_halves:
        frame = split_of(plan.datasets[name])
        lists = {"": frame, "second": second_half(frame, source=name)}
        tested = []
        for seed in range(4):
            own = lists[plan.half_of(name, seed)].groupby("role")["label"].agg(set)
            assert not own["train"] & own["test"]
            tested.append(own["test"])
        assert tested[0] == tested[2]
        assert tested[1] == tested[3]
        assert not tested[0] & tested[1]
        assert tested[0] | tested[1] == set(frame["label"])
    kept = set(plan.datasets) - set(with_halves)
    assert all(plan.half_of(name, seed) == "" for name in kept for seed in range(4))
    assert kept == set() or all(name in " ".join(plan.notices) for name in kept)


def test_data_sets_that_are_searched_within_themselves_have_two_halves():
    found = {name: len(plan.halves_of(name)) for plan in map(crossed, SCALES) for name in plan.datasets}
    assert {name for name, halves in found.items() if halves == 1} == {
        *("inshop", "cuhk03_detected", "pascal5i"),
        *("figurines_shop", "figurines_people", "figurines_scenes"),
    }


def test_classes_that_another_data_set_may_share_stay_on_one_side():
    plan = crossed(ROOT / "params" / "overlays" / "parts.yaml")
    assert plan.halves_of("cub100") == plan.halves_of("cub10") == ("",)
    (notice,) = [each for each in plan.notices if each.startswith("halves: crossed")]
    assert "cub100, as its models embed cub10; cub10, as models of cub100 embed it" in notice


def test_two_seeds_after_each_other_are_a_pair():
    assert [half_of_seed(seed) for seed in range(4)] == ["", "second", "", "second"]
    assert of_half("data/splits/cub.csv", "") == "data/splits/cub.csv"
    assert of_half("data/splits/cub.csv", "second") == "data/splits/cub.second.csv"


def test_halves_are_fixed_unless_scale_overlay_or_call_cross_them(params):
    assert Plan(CI).halves == ("",)
    assert Plan(CI).half_of("figurines_few_birds", 1) == ""
    assert Plan({**CI, "halves": "crossed"}).halves == ("", "second")
    scales = params / "scales"
    (scales / "both.yaml").write_text((scales / "ci.yaml").read_text() + "halves: crossed\n")
    assert Plan({**CI, "scale": "both"}).halves == ("", "second")
    assert Plan({**CI, "scale": "both", "halves": "fixed"}).halves == ("",)
    like = "title: t\nlike: both\ndatasets: {figurines_few_birds: {stands_for: cub}}\ntables: [ci_levels]\n"
    (scales / "liked.yaml").write_text(like)
    assert Plan({**CI, "scale": "liked"}).halves == ("", "second")
    own = {"name": "mine", "datasets": {"street": {"layout": "folder", "folder": "street"}}, "halves": "crossed"}
    assert Plan({**CI, **own}).halves_of("street") == ("", "second")


def test_a_call_takes_the_named_data_sets_and_the_strangers_alone():
    plan = Plan({**configuration("mini", []), "only": ["figurines_birds", "figurines_vehicles"]})
    assert [*plan.datasets] == ["figurines_birds", "figurines_vehicles", "figurines_strangers"]
    assert {*plan.runs_of("avsl_1")["dataset"]} == {"figurines_birds", "figurines_vehicles"}
    with pytest.raises(ValueError, match="only: unknown 'figurines_peple', did you mean 'figurines_people'"):
        Plan({**CI, "only": ["figurines_peple"]})


def test_another_word_is_refused_with_those_that_are_known():
    with pytest.raises(
        ValueError, match=r"halves: 'cross' is not allowed, did you mean 'crossed'. Known: fixed, crossed"
    ):
        Plan({**CI, "halves": "cross"})


def test_a_job_reads_the_list_of_its_seeds_half():
    inputs = Inputs(Plan({**CI, "halves": "crossed"}))
    assert inputs.manifest(job(0)) == inputs.pictures(job(2)) == "data/splits/figurines_few_birds.csv"
    assert inputs.manifest(job(1)) == inputs.training_pictures(job(3)) == "data/splits/figurines_few_birds.second.csv"
    assert inputs.manifest(job(1, "figurines_shop")) == "data/splits/figurines_shop.csv"
    assert inputs.manifest(Names(dataset="figurines_few_birds")) == "data/splits/figurines_few_birds.csv"
    assert inputs.half(Names(dataset="figurines_few_birds", half=".second")) == "second"
    assert inputs.pictures_root(job(1)) == inputs.root(job(0))
    copies = Inputs(Plan({**CI, "halves": "crossed", "picture_cache": CACHE}))
    assert copies.pictures(job(1)) == "data/pictures/figurines_few_birds-48px-png.second.csv"


def test_pictures_of_strangers_follow_the_half():
    inputs = Inputs(Plan({**CI, "scale": "mini", "halves": "crossed"}))
    noisy = "contextual_robustness_contextual_5_wrong_pictures"
    for seed, half in ((0, ""), (1, ".second")):
        named = Names(recipe=noisy, dataset="figurines_birds", seed=str(seed))
        assert inputs.strangers(named) == f"data/splits/figurines_strangers{half}.csv"


def test_tables_say_that_training_halves_are_two_fixed_sets_and_are_not_held_against_print():
    plan = crossed("paper")
    assert HALVES in plan.table("avsl_1").remarks
    assert HALVES not in Plan({**CI, "scale": "paper"}).table("avsl_1").remarks
    comparable = plan.runs_of("contextual_2").groupby("dataset")["comparable"].any()
    assert not comparable["cub"]
    assert comparable.get("inshop", np.True_)


def test_comparisons_have_two_seeds_of_each_half():
    plan = Plan({**CI, "halves": "crossed"})
    assert plan.several_seeds == [0, 1, 2, 3]
    plan.check_halves("figurines_few_birds", [0, 2])
    plan.check_halves("figurines_shop", [0, 1, 2])
    with pytest.raises(ValueError, match=r"^seeds 0, 1, 2: 1 alone trains on its half .* such as \[0, 1, 2, 3\]$"):
        plan.check_halves("figurines_few_birds", [0, 1, 2])


def test_classes_of_the_second_half_fill_batches_or_are_refused_by_name():
    sizes = {"train": (400, 40), "test": (30, 3)}
    own = {"name": "mine", "datasets": {"street": {"layout": "folder", "folder": "street"}}}
    check_batches(Plan({**CI, **own}), "street", sizes, ["contextual"])
    with pytest.raises(ValueError, match=r"^street, second half: 30 pictures of 3 training classes do not fill"):
        check_batches(Plan({**CI, **own, "halves": "crossed"}), "street", sizes, ["contextual"])


def test_rates_of_one_half_alone_are_refused_and_each_half_learns_by_its_own(params):
    config = {**CI, "scale": "mini", "halves": "crossed"}
    birds = Names(recipe="margin", dataset="figurines_birds", seed="1")
    file = params / "rates" / "mini.csv"
    file.write_text(
        f"{','.join(COLUMNS)}\nembedder,margin,avsl_baseline_margin,figurines_birds,0.001,0.004,2,0.5,yes\n"
    )
    said = r"mini\.yaml, halves: params/rates/mini\.csv holds rates for one half .* \(embedder with margin\)"
    with pytest.raises(ValueError, match=said):
        Inputs(Plan(config)).training_pictures(birds)
    trials = pd.read_csv(file)
    second = trials.assign(half="second", trunk=3 * trials["trunk"])
    pd.concat([trials.assign(half=""), second]).to_csv(file, index=False)
    inputs = Inputs(Plan(config))
    assert inputs.training_pictures(birds).endswith(".second.csv")
    first, other = (inputs.settings("train")(Names(**{**vars(birds), "seed": seed})) for seed in ("0", "1"))
    rates = [each["optimiser"]["lr"] for each in (first, other)]
    assert rates[1]["trunk"] == pytest.approx(3 * rates[0]["trunk"])
    assert {**first, "optimiser": None} == {**other, "optimiser": None}
    assert inputs.today("margin", "figurines_birds", 0) != inputs.today("margin", "figurines_birds", 1)
