"""Recipes, overlays and printed numbers, spoiled: settings that can be planned, or one line that says what is wrong."""

import copy
import itertools

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.published import papers, published_numbers
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.recipes import RecipeFile, RecipePart
from projects import OVERLAY, ROOT
from spoiled import NAMES, NUMBERS, examples, read_or_refused, spoiled_text, written

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(),
    st.sampled_from([*NAMES, *NUMBERS, "margin", "cub", "adamw"]),
    st.text(max_size=6),
    st.just([]),
    st.just({}),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["name", "lr", "trunk"]), st.integers(0, 3), max_size=2),
)
RECIPES = sorted((ROOT / "params" / "recipes").glob("*.yaml"))
SHORTEST = min(RECIPES, key=lambda path: path.stat().st_size)


def places(tree, where=()):
    """Keys and indices that lead to each value of a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*where, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*where, key))


@st.composite
def spoiled_settings(draw, whole):
    """Settings with up to three values or keys lost, exchanged or made up."""
    settings = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.sampled_from(list(places(settings))))
        holder = settings
        for key in where[:-1]:
            holder = holder[key]
        what = draw(st.sampled_from(["value", "value", "lose", "rename"]))
        if what == "value":
            holder[where[-1]] = draw(VALUES)
        else:
            value = holder.pop(where[-1])
            if what == "rename" and isinstance(holder, dict):
                holder[draw(st.sampled_from(["name", "loss", "lr", "likes", "titel", ""]))] = value
        if not settings:
            break
    return settings


@pytest.mark.parametrize(
    ("source", "kind"),
    [(SHORTEST, RecipeFile), (ROOT / "params/defaults.yaml", RecipePart), (ROOT / "params/config.yaml", Configuration)],
)
def test_a_spoiled_parameter_file_is_read_or_refused(params, source, kind):
    whole, numbers = source.read_text(), itertools.count()
    assert read(source, kind)

    @examples(0.02)
    @given(spoiled_text(whole))
    def try_it(content):
        path = written(params / f"try{next(numbers)}.yaml", content)  # a name for each, as files are read once
        found = read_or_refused(lambda: read(path, kind))
        assert found is None or isinstance(found, kind)
        path.unlink()

    try_it()


def test_spoiled_settings_of_an_overlay_are_planned_or_refused(params):
    base, overlay = read("params/config.yaml", Configuration).dump(), yaml.safe_load(OVERLAY)
    (params.parent / "pictures" / "one").mkdir(parents=True)
    assert "comparison" in Plan(merge(base, overlay)).tables

    @examples(0.01)
    @given(spoiled_settings(overlay))
    def try_it(settings):
        runs = read_or_refused(lambda: Plan(merge(base, settings)).runs)
        assert runs is None or len(runs)

    try_it()


@pytest.mark.parametrize("paper", papers())
def test_spoiled_printed_numbers_are_read_or_refused(params, paper):
    path = params / "published" / f"{paper}.csv"
    whole = "".join(path.read_text().splitlines(keepends=True)[:12])

    @examples(0.01)
    @given(spoiled_text(whole))
    def try_it(content):
        written(path, content)
        frame = read_or_refused(lambda: published_numbers.__wrapped__(paper))
        assert frame is None or frame["value"].notna().all()

    try_it()
