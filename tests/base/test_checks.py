"""What is refused is named with its place, and with what would be right."""

import pytest
import torch

from lookalike.base.checks import require_keys, require_known, require_positive, require_range


def test_an_unknown_name_is_told_with_the_nearest_one_and_all_in_order():
    require_known("here", "b", ["b", "a"])
    with pytest.raises(ValueError, match=r"^ties: unknown 'fist', did you mean 'first'\? Known: even, first$"):
        require_known("ties", "fist", ("first", "even"))


def test_of_very_many_names_only_the_nearest_are_told():
    names = [f"recipe_{number}" for number in range(100)]
    with pytest.raises(ValueError, match=r"unknown 'recipe_5x', did you mean 'recipe_5\d?'\? Nearest of 100: ") as told:
        require_known("table", "recipe_5x", names)
    assert len(str(told.value).split("Nearest")[1].split(", ")) == 8


def test_where_nothing_is_known_none_is_told():
    with pytest.raises(ValueError, match=r"^miner 'all', parameter: unknown 'margin'\. Known: none$"):
        require_keys("miner 'all', parameter", {"margin": 1}, [])


def test_an_index_outside_of_its_range_is_told_with_both_ends():
    require_range("labels", torch.tensor([0, 4]), 5)
    require_range("labels", torch.tensor([], dtype=torch.int64), 0)
    with pytest.raises(ValueError, match=r"^labels holds -1 to 5, it must stay in \[0, 4\]$"):
        require_range("labels", torch.tensor([5, -1]), 5)


def test_what_must_be_positive_is():
    require_positive("scale", 0.1)
    with pytest.raises(ValueError, match=r"^scale=0 must be above 0$"):
        require_positive("scale", 0)
