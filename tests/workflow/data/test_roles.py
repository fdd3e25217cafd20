"""A split from which nothing can be learned, or in which nothing can be found, is refused with what would be enough."""

import pandas as pd
import pytest

from described import described
from lookalike.workflow.data.roles import check_roles, check_usable, queries_without_positive


def split(**roles):
    """A row for each label of each role."""
    rows = [(f"{role}/{place}", label, role) for role, labels in roles.items() for place, label in enumerate(labels)]
    return pd.DataFrame(rows, columns=["path", "label", "role"])


@pytest.mark.parametrize(
    "roles",
    [
        {"train": "aabb", "test": "ccdd"},
        {"train": "aab", "test": "ccd"},
        {"train": "aabb", "test": "cc", "unlabelled": "?"},
        {"train": "aabb", "query": "c", "gallery": "cd"},
    ],
)
def test_enough_is_enough(roles):
    check_usable(split(**roles), "mine")


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (
            {"train": "aa", "test": "ccdd"},
            "mine, train: 1 class to learn from tells nothing apart; 2 classes are enough",
        ),
        ({"train": "aabb", "test": "ccc"}, "mine, test: 1 class to test on tells nothing apart; 2 classes are enough"),
        (
            {"train": "aabb", "test": "cd"},
            "mine, test: each of the 2 classes has 1 picture, .*; 2 pictures per class are",
        ),
        ({"train": "abc", "test": "ccdd"}, "mine, train: each of the 3 classes has 1 picture"),
        ({"train": "aabb"}, "mine has no test classes; it takes at least 2"),
        ({"unlabelled": "??"}, "mine has no training classes; models of another data set embed it if `trained_on`"),
        ({"train": "aabb", "query": "c", "gallery": "dd"}, "no query has a picture of its class in the gallery"),
        ({"train": "aabb", "query": "c", "unlabelled": "?"}, "no query has a picture of its class in the gallery"),
    ],
)
def test_too_little_is_refused_with_what_would_be_enough(roles, message):
    with pytest.raises(ValueError, match=message):
        check_usable(split(**roles), "mine")


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({"train": "aabc", "test": "ddef"}, (2, 4)),
        ({"train": "aabb", "test": "ccdd"}, (0, 4)),
        ({"train": "aa", "query": "bbbc", "gallery": "c", "unlabelled": "?"}, (3, 4)),
        ({"train": "aa", "query": "bc", "unlabelled": "?"}, (2, 2)),
        ({"unlabelled": "??"}, (0, 0)),
    ],
)
def test_queries_that_no_other_picture_is_right_for_are_counted(roles, expected):
    assert queries_without_positive(split(**roles)) == expected


def test_roles_go_together_and_with_who_is_searched():
    stated = described({"layout": "inshop", "self_match": True})
    with pytest.raises(ValueError, match="self_match=True does not go with the roles"):
        check_roles(split(train=[1], query=[2]), stated)
    with pytest.raises(ValueError, match=r"roles \['query', 'test'\] found; allowed: train, test or"):
        check_roles(split(test=[1], query=[2]), stated)
