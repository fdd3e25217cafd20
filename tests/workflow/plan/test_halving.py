"""Rates are searched by successive halving on a grid that grows where the best lies on its edge."""

import math
import random
from itertools import product

import pytest

from lookalike.workflow.plan.halving import (
    EXTENSIONS,
    Asked,
    Candidate,
    Choice,
    Design,
    asked_next,
    chosen,
    is_tied,
    surviving,
)

BEST, NEXT = Candidate(1e-4, 3e-3), Candidate(3e-4, 3e-3)
DESIGN = Design(trunk=(3e-5, 1e-4, 3e-4, 1e-3), head=(1e-3, 3e-3, 1e-2), survivors=(4, 2))
SEEDS = ((0,), (0, 1), (0, 1, 2))  # of each rung


def peak(trunk, head, own=1.0):
    """Scores that fall with the distance from the best rates, for each seed as much."""

    def score(candidate, seed):
        away = (math.log(candidate.trunk / trunk), math.log(candidate.head / head), math.log(candidate.own / own))
        return 1 - sum(each**2 for each in away) / 100 + seed / 50

    return score


def search(score, *, has_own=True, design=DESIGN):
    """All trials of a search that makes what it is asked for, as long as it is."""
    scores, rounds = {}, []
    while asked := asked_next(scores, design, has_own=has_own):
        assert not scores.keys() & set(asked), "nothing is tried twice"
        scores |= {each: [score(each.candidate, seed) for seed in SEEDS[each.rung]] for each in asked}
        rounds.append(asked)
    return scores, rounds


def test_the_full_grid_comes_first_then_survivors_then_other_rates_of_their_own():
    scores, rounds = search(peak(1e-4, 3e-3))
    grid = [Asked(0, Candidate(*pair)) for pair in product(DESIGN.trunk, DESIGN.head)]
    assert [len(asked) for asked in rounds] == [12, 4, 2, 4]
    assert rounds[0] == grid
    by_distance = sorted(grid, key=lambda asked: -scores[asked][0])
    assert [asked.candidate for asked in rounds[1]] == [asked.candidate for asked in by_distance[:4]]
    assert {asked.candidate for asked in rounds[3]} == {
        asked.candidate._replace(own=factor) for asked in rounds[2] for factor in (0.333, 3.0)
    }


def test_a_kind_without_rates_of_its_own_gets_as_many_trials():
    inside = peak(1e-4, 3e-3)
    with_own, without = (search(inside, has_own=has_own)[0] for has_own in (True, False))
    assert len(with_own) == len(without)
    varied = {asked.candidate.trunk for asked in without} - set(DESIGN.trunk)
    assert varied and all(DESIGN.trunk[0] < trunk < DESIGN.trunk[-1] for trunk in varied)


@pytest.mark.parametrize("draw", range(30))
def test_each_rung_tries_the_best_of_the_one_before_and_the_best_of_the_last_is_chosen(draw):
    noise = random.Random(draw)
    drawn = {}

    def score(candidate, seed):
        return drawn.setdefault((candidate, seed), noise.random())

    scores, _ = search(score)
    grid = [asked.candidate for asked in scores if asked.rung == 0]
    trunk, head = {each.trunk for each in grid}, {each.head for each in grid}
    assert len(trunk) <= len(DESIGN.trunk) + EXTENSIONS
    assert len(head) <= len(DESIGN.head) + EXTENSIONS
    candidates = [Candidate(*pair) for pair in product(sorted(trunk), sorted(head))]
    for rung, kept in enumerate(DESIGN.survivors):
        mean = {each: sum(scores[Asked(rung, each)]) / len(SEEDS[rung]) for each in candidates}
        candidates = [each for each in candidates if sum(other > mean[each] for other in mean.values()) < kept]
    pairs = {each[:2] for each in candidates}
    candidates = [asked.candidate for asked in scores if asked.rung == 2 and asked.candidate[:2] in pairs]
    assert len(candidates) >= 3 * len(pairs)
    best = max(candidates, key=lambda each: sum(scores[Asked(2, each)]))

    def on_edge(each):
        tried = [other.own for other in candidates if other[:2] == each[:2]]
        return any(rate in (min(of), max(of)) for rate, of in zip(each, (trunk, head, tried), strict=True))

    within = sorted((each for each in candidates if not on_edge(each)), key=lambda each: sum(scores[Asked(2, each)]))
    if within and is_tied(scores[Asked(2, best)], scores[Asked(2, within[-1])]):
        best = within[-1]
    assert chosen(scores, DESIGN, has_own=True) == Choice(best, on_edge(best))
    assert len(grid) == len(trunk) * len(head)


def test_the_grid_grows_a_level_at_the_edge_on_which_the_best_lies():
    scores, rounds = search(peak(3e-3, 3e-3))
    assert rounds[1] == [Asked(0, Candidate(3.33e-3, head)) for head in DESIGN.head]
    assert rounds[2] == [Asked(0, Candidate(1.11e-2, head)) for head in DESIGN.head]
    assert chosen(scores, DESIGN, has_own=True) == Choice(Candidate(3.33e-3, 3e-3), on_edge=False)


def test_it_grows_downwards_and_by_the_other_rate_too():
    _, rounds = search(peak(3e-5, 1e-2))
    assert {asked.candidate.trunk for asked in rounds[1]} == {9e-6}
    assert {asked.candidate.head for asked in rounds[2]} == {3.33e-2}


def test_each_rate_has_two_levels_more():
    scores, _ = search(peak(10.0, 10.0))
    first = [asked.candidate for asked in scores if asked.rung == 0]
    assert len({each.trunk for each in first}) == len(DESIGN.trunk) + EXTENSIONS
    assert len({each.head for each in first}) == len(DESIGN.head) + EXTENSIONS


def test_after_two_levels_more_the_choice_reads_edge():
    scores, _ = search(peak(10.0, 3e-3))
    trunk = {asked.candidate.trunk for asked in scores if asked.rung == 0}
    assert len(trunk) == len(DESIGN.trunk) + EXTENSIONS
    choice = chosen(scores, DESIGN, has_own=True)
    assert choice == Choice(Candidate(max(trunk), 3e-3), on_edge=True)


def test_what_is_best_only_in_a_longer_training_makes_the_grid_grow_too():
    def score(candidate, seed):
        return peak(1e-4, 4e-3)(candidate, seed) if seed == 0 else peak(1e-4, 0.1)(candidate, seed)

    _, rounds = search(score)
    assert [asked[0].rung for asked in rounds[:3]] == [0, 1, 0]
    assert {asked.candidate.head for asked in rounds[2]} == {3.33e-2}


def test_a_rate_with_one_level_has_no_edge():
    design = Design(trunk=DESIGN.trunk, head=(1e-3,), survivors=(2,))
    scores, _ = search(peak(1e-4, 0.1), design=design)
    assert chosen(scores, design, has_own=True) == Choice(Candidate(1e-4, 1e-3), on_edge=False)


def test_rates_of_its_own_are_chosen_where_they_are_better():
    scores, _ = search(peak(1e-4, 3e-3, own=4.0))
    assert chosen(scores, DESIGN, has_own=True).candidate == Candidate(1e-4, 3e-3, 3.0)


def test_a_rate_of_its_own_has_two_levels_more_and_then_the_choice_reads_edge():
    scores, rounds = search(peak(1e-4, 3e-3, own=0.111))
    assert rounds[-2:] == [[Asked(2, Candidate(1e-4, 3e-3, own))] for own in (0.111, 0.037)]
    assert chosen(scores, DESIGN, has_own=True) == Choice(Candidate(1e-4, 3e-3, 0.111), on_edge=False)
    scores, rounds = search(peak(1e-4, 3e-3, own=100.0))
    assert rounds[-2:] == [[Asked(2, Candidate(1e-4, 3e-3, own))] for own in (9.0, 27.0)]
    assert chosen(scores, DESIGN, has_own=True) == Choice(Candidate(1e-4, 3e-3, 27.0), on_edge=True)


def test_a_rate_of_its_own_that_is_as_good_within_is_not_tried_beyond():
    def score(candidate, seed):
        ahead = (candidate.own == 0.333) * 0.03 * (seed - 0.9)  # by less than its standard error
        return peak(1e-4, 3e-3)(candidate._replace(own=1.0), seed) + ahead

    scores, rounds = search(score)
    assert len(rounds[-1]) == 4
    assert chosen(scores, DESIGN, has_own=True).candidate == Candidate(1e-4, 3e-3)


def with_noise(scores, noise, best=BEST, other=NEXT):
    """The same, where the best pair is ahead by a little, and seeds differ in it by so much."""
    last = max(asked.rung for asked in scores)
    return (
        scores
        | {
            Asked(last, each): [0.9 + ahead + change for change in changes]
            for each, ahead, changes in (
                (best, 0.01, (noise, -noise, 0)),
                (other, 0.0, (0, 0, 0)),
            )
        }
        | {asked: [0.0] * 3 for asked in scores if asked.rung == last and asked.candidate.own != 1}
    )


@pytest.mark.parametrize(("noise", "trunk"), [(0.03, 3e-4), (0.001, 1e-4)])
def test_a_tie_goes_to_the_pair_of_the_plain_twin(noise, trunk):
    scores, _ = search(peak(1.6e-4, 3e-3))
    scores = with_noise(scores, noise)
    twin = Candidate(3e-4, 3e-3, 3.0)  # its factor is not the kind's
    assert chosen(scores, DESIGN, has_own=True).candidate == Candidate(1e-4, 3e-3)
    assert chosen(scores, DESIGN, has_own=True, twin=twin).candidate == Candidate(trunk, 3e-3)
    assert chosen(scores, DESIGN, has_own=True, twin=Candidate(1e-3, 1e-3)).candidate == Candidate(1e-4, 3e-3)


@pytest.mark.parametrize(("noise", "trunk"), [(0.03, 3.33e-3), (0.001, 1.11e-2)])
def test_a_tie_goes_to_rates_within_the_grid(noise, trunk):
    design = DESIGN._replace(head=(3e-3,))
    scores, _ = search(peak(10.0, 3e-3), design=design)
    outer, inner = Candidate(1.11e-2, 3e-3), Candidate(3.33e-3, 3e-3)
    scores = with_noise(scores, noise, outer, inner)
    assert chosen(scores, design, has_own=True) == Choice(Candidate(trunk, 3e-3), on_edge=trunk == outer.trunk)
    assert chosen(scores, design, has_own=True, twin=outer) == Choice(outer, on_edge=True), "the twin's come first"


def test_a_tie_is_a_difference_within_its_standard_error():
    best, other = [0.5, 0.7, 0.6], [0.4, 0.7, 0.55]
    differences = [0.1, 0.0, 0.05]
    mean = sum(differences) / 3
    error = math.sqrt(sum((each - mean) ** 2 for each in differences) / 2) / math.sqrt(3)
    assert is_tied(best, other) == (mean <= error)
    assert is_tied([0.5, 0.7], [0.4, 0.8])
    assert not is_tied([0.5], [0.4])
    assert is_tied([0.5], [0.5])


def test_of_equals_the_first_survives():
    candidates = [Candidate(1.0, 1.0), Candidate(2.0, 1.0), Candidate(3.0, 1.0)]
    scores = {Asked(0, each): [score] for each, score in zip(candidates, (0.5, 0.7, 0.5), strict=True)}
    assert surviving(scores, 0, candidates, 2) == [candidates[1], candidates[0]]


def test_a_trial_that_is_missing_is_named():
    scores, rounds = search(peak(1e-4, 3e-3))
    del scores[rounds[1][0]]
    with pytest.raises(ValueError, match=r"^no choice without Candidate\(trunk=0\.0001, head=0\.003.*\) at rung 1$"):
        chosen(scores, DESIGN, has_own=True)
