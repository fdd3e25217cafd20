"""Claims are read and checked before any job, decided by what both sides reached, and told."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lookalike.plan.plan import Plan
from lookalike.reports.claims import claim_cells, claim_runs, claim_summaries, claims, markdown, read_claims, verdict
from lookalike.settings.files import read_entries
from lookalike.settings.pages import Claim
from lookalike.statistics.crossed import crossed_estimate
from lookalike.statistics.decisions import RATES
from lookalike.statistics.verdict import Verdict
from projects import ROOT

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
ABOUT = {"scale": "small", "chosen_on": "the test classes"}
BEST = 0.02  # more at the best epoch
CLAIM = {"says": "It is better.", "place": "Somewhere", "metric": "R@1", "direction": "higher"}
ONE = {"better": {**CLAIM, "datasets": ["cub"], "pairs": [{"changed": "new", "baseline": "old"}]}}
CLASSES = pd.Index(range(40), name="label")
QUERIES = np.tile([16, 20], 20)
CLAIMS = {
    "raises": {
        "says": "Changing raises it.",
        "place": "A paper, Table 1",
        "metric": "R@1",
        "direction": "higher",
        "datasets": ["cub", "cars"],
        "pairs": [{"changed": "new", "baseline": "old"}, {"changed": "newer", "baseline": "old"}],
    },
    "elsewhere": {
        "says": "Of other data.",
        "place": "A paper, Table 2",
        "metric": "mAP",
        "direction": "lower",
        "datasets": ["sop"],
        "pairs": [{"changed": "new", "baseline": "old"}],
    },
}
# True differences and deviations in percent points.
BETTER, WORSE, LITTLE, NOISE = (8.0, 1.0), (-8.0, 1.0), (0.0, 1.0), (1.0, 40.0)
MIXED = {("cub", "new"): BETTER, ("cub", "newer"): NOISE, ("cars", "new"): WORSE, ("cars", "newer"): LITTLE}


def planned(**values):
    plan = Plan({**MINI, **values})
    return claim_runs(plan, read_claims(plan))


def test_every_claim_is_tested_on_all_its_data_sets_at_mini_and_at_paper_scale():
    for scale in ("mini", "paper"):
        runs = planned(scale=scale)
        expected = {
            (name, dataset, pair.changed, pair.baseline)
            for name, claim in read_entries("params/claims.yaml", Claim).items()
            for dataset in claim.datasets
            for pair in claim.pairs
        }
        assert {(run["claim"], run["published"], run["changed"], run["baseline"]) for run in runs} == expected
        assert len(runs) == 3 * len(expected)


def test_seeds_are_those_of_the_call_if_there_are_two_and_else_three():
    assert {run["seed"] for run in planned(seeds=[4])} == {0, 1, 2}
    assert {run["seed"] for run in planned(seeds=[4, 7])} == {4, 7}


def test_a_claim_about_data_that_a_scale_does_not_have_is_kept_without_runs():
    plan = Plan({**MINI, "scale": "ci"})
    claims = read_claims(plan)
    assert "contextual_regulariser" in claims  # Cars and SOP
    runs = claim_runs(plan, claims)
    assert {run["dataset"] for run in runs} == {"figurines_few_birds"}
    assert "contextual_regulariser" not in {run["claim"] for run in runs}


def test_own_pictures_that_stand_for_nothing_have_no_claims():
    datasets = {"pictures": {"layout": "folder", "folder": "x"}}
    assert planned(name="mine", datasets=datasets) == []


REFUSED = [
    (
        "{changed: margin_diml,",
        "{changed: margin_dilm,",
        r"params/claims\.yaml, diml_precision\.pairs\.13\.changed: unknown 'margin_dilm', did you mean 'margin_diml'",
    ),
    (
        "baseline: avsl_levels}",
        "baseline: avsl_level}",
        r"params/claims\.yaml, avsl_graph\.pairs\.0\.baseline: unknown 'avsl_level', did you mean 'avsl_levels'",
    ),
    (
        "datasets: [cub, cars, sop]",
        "datasets: [cub, carz, sop]",
        r"params/claims\.yaml, avsl_recall\.datasets: unknown 'carz', did you mean 'cars'",
    ),
    (
        "metric: P@1",
        "metric: P@2",
        r"params/claims\.yaml, diml_precision\.metric: unknown 'P@2', did you mean 'R@2'",
    ),
    ("direction: higher", "direction: up", r"params/claims\.yaml, diml_precision\.direction: 'up' is not allowed"),
    (
        "says: Matching",
        "said: Matching",
        r"params/claims\.yaml, diml_precision: unknown key 'said', did you mean 'says'",
    ),
    (
        "metric: P@1",
        "metric: train_R@1",
        r"diml_precision\.metric: train_R@1 needs embed\.training_pictures, which recipe contrastive_diml does not set",
    ),
    (
        "baseline: triplet_hinge}",
        "baseline: avsl_margin}",
        r"sam_coverage\.metric: coverage needs train\.method embedder or sam; recipe avsl_margin trains avsl",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_cannot_be_claimed_is_refused_with_file_key_and_what_would_be_right(params, old, new, message):
    text = (params / "claims.yaml").read_text()
    assert old in text
    (params / "claims.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        planned()


def test_a_recipe_that_cannot_run_is_refused_when_it_stands_in_claims_only(params):
    recipes = params / "recipes" / "contextual.yaml"
    old = "contextual_seen: {like: contextual,"
    recipes.write_text(recipes.read_text().replace(old, f"{old} train: {{loss: {{kk: 3}}}},"))
    with pytest.raises(ValueError, match=r"recipe contextual_seen on figurines_birds, train\.loss: unknown 'kk'"):
        planned()


def runs(seeds):
    run = {
        "claim": "better",
        "metric": "R@1",
        "published": "cub",
        "dataset": "birds",
        "changed": "new",
        "baseline": "old",
    }
    return [{**run, "seed": seed} for seed in range(seeds)]


def files(folder, name, values):
    paths = [folder / f"{name}{seed}.json" for seed in range(len(values))]
    for path, value in zip(paths, values, strict=True):
        path.write_text(json.dumps({"best": {"R@1": value + BEST, "mAP": 0.1}, "last": {"R@1": value, "mAP": 0.0}}))
    return [str(path) for path in paths]


def write_classes(paths, values):
    """Beside each file what its classes reached: 40 of ten queries, of which some find little."""
    for path, value in zip(paths, values, strict=True):
        rows = [
            (epoch, "test", label, 10, value + more + (0.1 if label % 2 else -0.1))
            for epoch, more in (("best", BEST), ("last", 0.0))
            for label in range(40)
        ]
        rows += [("best", "train", label, 10, 1.0) for label in range(3)]
        lines = [",".join(map(str, row)) for row in rows]
        Path(path).with_suffix(".classes.csv").write_text(
            "\n".join(["checkpoint,pictures,label,queries,R@1", *lines]) + "\n"
        )


def test_the_last_epochs_are_compared_and_written_twice(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6, 0.55]), "baseline": files(tmp_path, "old", [0.25, 0.34, 0.3])}
    write_classes(sides["changed"], [0.5, 0.6, 0.55])
    write_classes(sides["baseline"], [0.25, 0.34, 0.3])
    claims(ONE, runs(3), **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        [cell] = csv.DictReader(stream)
    assert (cell["claim"], cell["dataset"], cell["verdict"]) == ("better", "birds", "holds")
    assert (cell["seeds"], cell["classes"]) == ("3", "40")
    assert float(cell["difference"]) == pytest.approx(25.333, abs=1e-3)
    assert float(cell["best_difference"]) == pytest.approx(25.333, abs=1e-3)
    assert "+25.3 [" in (tmp_path / "claims.md").read_text()


def test_readers_see_the_numbers_of_the_file_rounded_once_more(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5384997]), "baseline": files(tmp_path, "old", [0.5])}
    claims(ONE, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))
    assert ",3.8500," in (tmp_path / "claims.csv").read_text()
    assert "| +3.9 [" in (tmp_path / "claims.md").read_text()


def test_without_the_classes_of_both_sides_the_seeds_alone_are_compared(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6]), "baseline": files(tmp_path, "old", [0.25, 0.34])}
    write_classes(sides["changed"], [0.5, 0.6])
    claims(ONE, runs(2), **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        [cell] = csv.DictReader(stream)
    assert (cell["seeds"], cell["classes"]) == ("2", "1")


def test_sides_that_were_tested_on_other_classes_are_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    write_classes(sides["changed"], [0.5])
    write_classes(sides["baseline"], [0.25])
    path = tmp_path / "old0.classes.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:30]) + "\n")
    with pytest.raises(ValueError, match=r"new0\.json and .*old0\.json were not tested on the same pictures"):
        claims(ONE, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_sides_with_other_numbers_of_queries_in_a_class_are_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    for side in sides.values():
        write_classes(side, [0.5])
    path = tmp_path / "old0.classes.csv"
    rows = pd.read_csv(path)
    rows.assign(queries=rows["queries"] + 1).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"new0\.json and .*old0\.json were not tested on the same pictures"):
        claims(ONE, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_a_file_that_its_classes_contradict_is_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    write_classes(sides["changed"], [0.5])
    write_classes(sides["baseline"], [0.3])
    with pytest.raises(ValueError, match=r"old0\.json says R@1 0\.2500, its classes come to 0\.3000; remove it and"):
        claims(ONE, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_a_file_without_the_claimed_metric_is_named(tmp_path):
    lacking = {"better": {**ONE["better"], "metric": "RP"}}
    changed, baseline = files(tmp_path, "new", [0.5]), files(tmp_path, "old", [0.5])
    wrong = [{**run, "metric": "RP"} for run in runs(1)]
    with pytest.raises(ValueError, match=r"new0\.json holds no RP; it holds R@1, mAP"):
        claims(
            lacking,
            wrong,
            scale="small",
            chosen_on="the test classes",
            changed=changed,
            baseline=baseline,
            output=str(tmp_path / "claims"),
        )
    assert not (tmp_path / "claims.csv").exists()


def test_what_lies_on_the_object_is_not_tested_where_pictures_have_no_masks(tmp_path):
    claimed = {"better": ONE["better"], "on_object": {**ONE["better"], "metric": "on_object"}}
    asked = [*runs(2), *({**run, "claim": "on_object", "metric": "on_object"} for run in runs(2))]
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6]) * 2, "baseline": files(tmp_path, "old", [0.25, 0.34]) * 2}
    claims(claimed, asked, **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        assert [cell["claim"] for cell in csv.DictReader(stream)] == ["better"]
    assert (tmp_path / "claims.md").read_text().count("Not tested: no data.") == 1


def test_judging_claims_needs_no_torch():
    program = "import sys, lookalike.reports.claims; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def differences(place, cell, seeds=3):
    """``(S, C)`` fractions of one comparison."""
    mean, deviation = cell
    return np.random.default_rng(place).normal(mean, deviation, (seeds, len(CLASSES))) / 100


def frame(cells, seeds=3, told_apart=True):
    """Runs of the claim `raises`."""
    rows = []
    for place, ((published, changed), cell) in enumerate(cells.items()):
        drawn = differences(place, cell, seeds)
        for seed, of_classes in enumerate(drawn):
            by_class = pd.DataFrame({"difference": of_classes, "queries": QUERIES}, index=CLASSES)
            value = float(of_classes @ QUERIES / QUERIES.sum())
            rows.append(
                {"claim": "raises", "metric": "R@1", "published": published, "dataset": f"figurines_{published}"}
                | {"changed": changed, "baseline": "old", "seed": seed}
                | {"changed_value": 0.5 + value, "baseline_value": 0.5, "classes": by_class if told_apart else None}
            )
    return pd.DataFrame(rows)


def cells_of(runs, best=None):
    return claim_cells(CLAIMS, runs, runs if best is None else best)


def told(runs, scale):
    return markdown(CLAIMS, cells_of(runs), seeds=sorted(set(runs["seed"])), chosen_on="the test classes", scale=scale)


@pytest.mark.parametrize(
    ("direction", "reached", "expected"),
    [
        ("higher", "higher", "holds"),
        ("higher", "lower", "does not hold"),
        ("higher", "equal", "does not hold"),
        ("higher", "small", "small"),
        ("higher", "undecided", "undecided"),
        ("lower", "lower", "holds"),
        ("lower", "higher", "does not hold"),
        ("different", "higher", "holds"),
        ("different", "lower", "holds"),
        ("different", "small", "small"),
        ("different", "equal", "does not hold"),
    ],
)
def test_a_verdict_follows_from_what_the_difference_comes_to(direction, reached, expected):
    assert verdict(direction, Verdict(reached)) == expected


@pytest.mark.parametrize("told_apart", [True, False])
def test_a_cell_holds_means_in_percent_and_the_interval_over_seeds_and_classes(told_apart):
    cells = cells_of(frame(MIXED, told_apart=told_apart))
    first = cells.iloc[0]
    assert (first["published"], first["dataset"], first["changed"]) == ("cub", "figurines_cub", "new")
    drawn = 100 * differences(0, BETTER)
    means = drawn @ QUERIES / QUERIES.sum()
    expected = crossed_estimate(drawn, QUERIES) if told_apart else crossed_estimate(means[:, None])
    assert first["baseline_mean"] == pytest.approx(50)
    assert first["changed_mean"] == pytest.approx(50 + means.mean())
    assert first["difference"] == pytest.approx(means.mean())
    assert (first["low"], first["high"]) == pytest.approx(expected.interval(1 - first["level"] / 100))
    assert (first["seeds"], first["classes"]) == (3, 40 if told_apart else 1)


def test_comparisons_are_decided_together_and_the_level_says_how_many():
    cells = cells_of(frame(MIXED))
    assert list(cells["verdict"]) == ["holds", "undecided", "does not hold", "small"]
    assert set(cells["level"]) == {100 * (1 - RATES[0] * 3 / 4)}


def test_the_last_epoch_decides_and_the_best_one_stands_beside():
    cells = cells_of(frame(MIXED), best=frame(dict.fromkeys(MIXED, BETTER)))
    alone = cells_of(frame(MIXED))
    assert list(cells["verdict"]) == list(alone["verdict"]) == ["holds", "undecided", "does not hold", "small"]
    assert list(cells["best_verdict"]) == ["holds"] * 4
    assert list(cells["difference"]) == list(alone["difference"])
    assert cells["best_difference"].min() > 7


def test_a_single_seed_without_classes_leaves_every_claim_undecided():
    cells = cells_of(frame(MIXED, seeds=1, told_apart=False))
    assert set(cells["verdict"]) == {"undecided"}
    assert cells["low"].isna().all()


def test_what_a_look_has_decided_stays_as_it_was_then_and_the_others_take_all_seeds():
    cells = cells_of(frame({**MIXED, ("cub", "newer"): (3.0, 15.0)}, seeds=10))
    assert list(cells["seeds"]) == [3, 10, 3, 3]
    assert list(cells["verdict"]) == ["holds", "holds", "does not hold", "small"]


def test_seeds_are_paired_whatever_the_order_of_the_runs():
    runs = frame(MIXED)
    shuffled = runs.sample(frac=1, random_state=0)
    keys = ["published", "changed"]
    pd.testing.assert_frame_equal(
        cells_of(runs).sort_values(keys, ignore_index=True),
        cells_of(shuffled).sort_values(keys, ignore_index=True),
    )


def test_seeds_that_were_tested_on_other_classes_are_refused():
    runs = frame({("cub", "new"): BETTER})
    runs["classes"] = [*runs["classes"][:2], runs["classes"][2].iloc[1:]]
    with pytest.raises(ValueError, match=r"^new on figurines_cub: seed 2 was not tested on the classes of seed 0"):
        cells_of(runs)


def test_a_seed_without_numbers_by_class_beside_others_with_them_is_refused():
    runs = frame({("cub", "new"): BETTER})
    runs["classes"] = [*runs["classes"][:2], None]
    with pytest.raises(ValueError, match=r"^new on figurines_cub: seed 2 has no numbers by class, others have; remove"):
        cells_of(runs)


def test_comparisons_of_different_numbers_of_seeds_are_refused():
    runs = frame(MIXED)
    fewer = runs[(runs["published"] != "cars") | (runs["changed"] != "new") | (runs["seed"] < 2)]
    with pytest.raises(
        ValueError, match=r"^new on figurines_cars has 2 seeds, new on figurines_cub has 3 seeds; a loo"
    ):
        cells_of(fewer)


def test_a_summary_counts_the_single_verdicts():
    summary = claim_summaries(CLAIMS, cells_of(frame(MIXED))).set_index("claim").loc["raises"]
    cells = cells_of(frame(MIXED))
    assert summary["difference"] == pytest.approx(cells["difference"].mean())
    assert [summary[each] for each in ("holds", "does not hold", "small", "undecided")] == [1, 1, 1, 1]


def test_deviations_are_of_all_seeds_whatever_a_look_has_taken():
    cells = cells_of(frame(MIXED, seeds=10))
    first = cells.iloc[0]
    values = 100 * differences(0, BETTER, seeds=10) @ QUERIES / QUERIES.sum()
    assert first["seeds"] == 3
    assert first["changed_mean"] == pytest.approx(50 + values[:3].mean())
    assert first["changed_deviation"] == pytest.approx(values.std(ddof=1))
    assert first["baseline_deviation"] == 0
    alone = frame(MIXED, seeds=1)
    assert cells_of(alone)["changed_deviation"].isna().all()
    assert f"| {100 * alone['changed_value'].iloc[0]:.1f} " in told(alone, "one seed")


def test_the_difference_of_all_seeds_stands_beside_that_of_fewer():
    cells, text = cells_of(frame(MIXED, seeds=10)), told(frame(MIXED, seeds=10), "mini")
    first, open_one = cells.iloc[0], cells.iloc[1]
    of_all = (100 * differences(0, BETTER, seeds=10) @ QUERIES / QUERIES.sum()).mean()
    assert first["difference_of_all"] == pytest.approx(of_all)
    assert f"{first['difference']:+.1f} [{first['low']:+.1f}, {first['high']:+.1f}] ({of_all:+.1f}) |" in text
    assert (open_one["seeds"], open_one["difference_of_all"]) == (10, open_one["difference"])
    interval = f"{open_one['difference']:+.1f} [{open_one['low']:+.1f}, {open_one['high']:+.1f}]"
    assert interval in text
    assert f"{interval} (" not in text


@pytest.mark.parametrize(
    ("seeds", "said"), [(1, False), (2, True), (3, False), (5, True), (10, False), (12, True), (20, False)]
)
def test_between_two_looks_verdicts_are_called_provisional(seeds, said):
    words = f"{seeds} seeds are none of the 3, 10, 20 of a look: what they decide is provisional."
    assert (words in told(frame(MIXED, seeds=seeds), "mini")) == said


def test_a_claim_without_data_is_told_as_not_tested():
    summary = claim_summaries(CLAIMS, cells_of(frame(MIXED))).set_index("claim").loc["elsewhere"]
    assert math.isnan(summary["difference"])
    assert [summary[each] for each in ("holds", "does not hold", "small", "undecided")] == [0, 0, 0, 0]
    text = told(frame(MIXED), "mini")
    assert "not tested" in next(line for line in text.splitlines() if line.startswith("| elsewhere"))


def test_readers_see_every_comparison_with_its_numbers():
    text, cells = told(frame(MIXED), "a scale"), cells_of(frame(MIXED))
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    shown = [row for row in rows if "figurines" in row[0]]
    assert len(shown) == len(MIXED)
    for row, cell in zip(shown, cells.to_dict("records"), strict=True):
        interval = f"{cell['difference']:+.1f} [{cell['low']:+.1f}, {cell['high']:+.1f}]"
        assert row[1:3] == [cell["changed"], "old"]
        beside = f"{interval}, 3 seeds: {cell['verdict']}"  # here both epochs are one
        assert row[3:5] == [f"{cell['changed_mean']:.1f} ± {cell['changed_deviation']:.1f}", "50.0 ± 0.0"]
        assert row[5:] == [interval, "99.25 %", "3", "40", cell["verdict"], beside]
    for words in ("Changing raises it.", "A paper, Table 1", "seeds 0, 1, 2", "Scale: a scale", "within 2 points"):
        assert words in text


def test_no_claim_with_data_at_all_is_still_a_document():
    text = told(frame({}).reindex(columns=frame(MIXED).columns), "bare")
    assert text.count("Not tested") == 2
