"""Episodes follow their rule, and every recipe sees the same ones."""

import hashlib

import pandas as pd
import pytest

from lookalike.segmentation.episodes import draw_episodes, read_episodes, write_episodes

SHAPE = {"shots": 3, "episodes": 12, "draws": 2}


def shown_pictures(folds=2, each=9):
    """Three classes per fold; every third picture of a class shows the next class of the fold, too."""
    rows = []
    for fold in range(folds):
        for place in range(3):
            for number in range(each):
                path = f"{fold}-{place}-{number}.jpg"
                shown = [place] if number % 3 else [place, (place + 1) % 3]
                rows += [(path, 3 * fold + other + 1, fold) for other in shown]
    return pd.DataFrame(rows, columns=["path", "label", "fold"])


def columns(row, prefix):
    return [row[f"{prefix}support_{place}"] for place in (1, 2, 3)]


def test_an_episode_has_two_classes_of_its_fold_and_only_different_pictures():
    test = shown_pictures()
    shows = set(test[["path", "label"]].itertuples(index=False, name=None))
    listed = draw_episodes(test, **SHAPE)
    assert len(listed) == 2 * 2 * 12
    for row in listed.to_dict("records"):
        assert row["label"] != row["other"]
        assert {(row["label"] - 1) // 3, (row["other"] - 1) // 3} == {row["fold"]}
        own, others = columns(row, ""), columns(row, "other_")
        assert all((path, row["label"]) in shows for path in [row["query"], *own])
        assert all((path, row["other"]) in shows for path in others)
        assert len({row["query"], *own, *others}) == 7


def test_classes_queries_and_supports_are_drawn_evenly():
    listed = draw_episodes(shown_pictures(folds=1), shots=1, episodes=3000, draws=1)
    for column in ("label", "other"):
        assert listed[column].value_counts(normalize=True).to_numpy() == pytest.approx([1 / 3] * 3, abs=0.04)
    of_class = listed[listed["label"] == 1]  # shown by 12 pictures
    for column in ("query", "support_1"):
        assert of_class[column].value_counts(normalize=True).to_numpy() == pytest.approx([1 / 12] * 12, abs=0.04)


def test_the_list_depends_on_the_pictures_alone_and_not_on_their_order():
    test = shown_pictures()
    listed = draw_episodes(test, **SHAPE)
    assert listed.equals(draw_episodes(test.sample(frac=1, random_state=0), **SHAPE))
    first, second = (listed[listed["draw"] == draw].drop(columns="draw").reset_index(drop=True) for draw in (0, 1))
    assert not first.equals(second)


def test_a_longer_list_begins_with_the_shorter_one():
    test = shown_pictures()
    longer = draw_episodes(test, shots=3, episodes=20, draws=3)
    begin = longer[(longer["episode"] < 12) & (longer["draw"] < 2)].reset_index(drop=True)
    assert begin.equals(draw_episodes(test, **SHAPE))


@pytest.fixture
def listed(tmp_path):
    frame = draw_episodes(shown_pictures(), **SHAPE)
    write_episodes(frame, tmp_path / "list.csv", tmp_path / "list.csv.sha256")
    return frame, tmp_path / "list.csv"


def test_one_way_and_one_shot_read_the_beginning_of_each_row(listed):
    frame, path = listed
    assert (
        path.with_name("list.csv.sha256").read_text() == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  list.csv\n"
    )
    one = read_episodes(path, ways=1, shots=1, episodes=12, draws=2)
    two = read_episodes(path, ways=2, shots=3, episodes=12, draws=2)
    for row, single, double in zip(frame.to_dict("records"), one, two, strict=True):
        assert (single.draw, single.fold, single.query) == (row["draw"], row["fold"], row["query"])
        assert (single.labels, single.supports) == ((row["label"],), ((row["support_1"],),))
        assert double.labels == tuple(sorted((row["label"], row["other"])))
        own, others = double.labels.index(row["label"]), double.labels.index(row["other"])
        assert double.supports[own] == tuple(columns(row, ""))
        assert double.supports[others] == tuple(columns(row, "other_"))
        assert double.pictures == (row["query"], *double.supports[0], *double.supports[1])


def test_part_of_a_list_can_be_read_but_not_more_than_it_has(listed):
    _, path = listed
    part = read_episodes(path, ways=1, shots=1, episodes=5, draws=1)
    assert [(each.draw, each.fold) for each in part] == [(0, 0)] * 5 + [(0, 1)] * 5
    for name, had in SHAPE.items():
        asked = {"ways": 1, **SHAPE, name: had + 1}
        with pytest.raises(ValueError, match=f"has {had} {name}, {had + 1} are asked for"):
            read_episodes(path, **asked)


def test_queries_of_two_ways_show_both_classes():
    test = shown_pictures()
    shows = set(test[["path", "label"]].itertuples(index=False, name=None))
    listed = draw_episodes(test, **SHAPE, ways=2)
    assert len(listed) == 2 * 2 * 12
    for row in listed.to_dict("records"):
        own, others = columns(row, ""), columns(row, "other_")
        assert {(row["query"], row["label"]), (row["query"], row["other"])} <= shows
        assert all((path, row["label"]) in shows for path in own)
        assert all((path, row["other"]) in shows for path in others)
        assert len({row["query"], *own, *others}) == 7
        assert {(row["label"] - 1) // 3, (row["other"] - 1) // 3} == {row["fold"]}
    longer = draw_episodes(test, shots=3, episodes=20, draws=3, ways=2)
    begin = longer[(longer["episode"] < 12) & (longer["draw"] < 2)].reset_index(drop=True)
    assert begin.equals(listed)


def test_pairs_of_classes_that_no_picture_shows_together_are_not_drawn():
    test = shown_pictures(folds=1)
    test = test[~((test["path"].str.startswith("0-2")) & (test["label"] == 1))]  # classes 3 and 1 never together
    drawn = draw_episodes(test, shots=1, episodes=2000, draws=1, ways=2)
    pairs = pd.Series(list(zip(drawn["label"], drawn["other"], strict=True))).value_counts(normalize=True)
    assert sorted(pairs.index) == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert pairs.to_numpy() == pytest.approx([1 / 4] * 4, abs=0.05)
    alone = test[~test["path"].duplicated(keep=False)]
    with pytest.raises(ValueError, match="fold 0 has no test picture that shows two of its classes, as two ways need"):
        draw_episodes(alone, shots=1, episodes=1, draws=1, ways=2)


def test_the_list_of_one_way_stays_what_it_was():
    listed = draw_episodes(shown_pictures(), **SHAPE)
    text = listed.to_csv(index=False, lineterminator="\n")
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "e045d35d8d6f6b19de27ad533bd84dfa240a06b810791ea97f26d2c8375c4e99"
    )


def test_too_few_pictures_or_classes_are_refused_by_name():
    few = shown_pictures(each=3)
    with pytest.raises(ValueError, match=r"fold 0: class \d has \d test pictures .* are needed"):
        draw_episodes(few, shots=4, episodes=1, draws=1)
    with pytest.raises(ValueError, match="fold 0 has test pictures of 1 class, an episode needs two"):
        draw_episodes(few[few["label"] == 1], shots=1, episodes=1, draws=1)
