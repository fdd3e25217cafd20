"""Settings are refused in one line that names file, key and value and says what would be right."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from lookalike.workflow.settings.model import (
    Model,
    Name,
    Part,
    Rate,
    SomeUnique,
    checked,
    checked_entries,
    containing,
    typed,
)

Side = Annotated[int, Field(ge=8)]


class Thing(Model):
    side: Side | Annotated[list[Side], Field(min_length=2, max_length=2)]
    look: Literal[10, 20] = 10
    rate: Rate = 1.0
    sizes: dict[Name, int] = {}
    loss: Part | None = None
    metrics: Annotated[SomeUnique[str], containing("R@1")] = ["R@1"]
    text: str = ""


REFUSED = [
    ({}, "file: 'side' is a required property"),
    (
        {"sied": 9},
        "file: unknown key 'sied', did you mean 'side'? Known keys: look, loss, metrics, rate, side, sizes, text",
    ),
    ({"side": 3}, "file, side: 3 is less than the minimum of 8"),
    ({"side": [9, 3]}, "file, side.1: 3 is less than the minimum of 8"),
    ({"side": [9]}, "file, side: [9] is too short"),
    ({"side": "9"}, "file, side: '9' is not of type 'integer'"),
    ({"side": 9.0}, "file, side: 9.0 is not of type 'integer'"),
    ({"side": True}, "file, side: True is not of type 'integer'"),
    ({"side": 9, "look": 11}, "file, look: 11 is not allowed, did you mean '10'? Known: 10, 20"),
    ({"side": 9, "rate": -1}, "file, rate: -1 is less than the minimum of 0"),
    ({"side": 9, "rate": "1e-5"}, "file, rate: '1e-5' is text to YAML, as it has no dot; 1.0e-05 is a number"),
    ({"side": 9, "rate": float("nan")}, "file, rate: nan is not of type 'number'"),
    (
        {"side": 9, "sizes": {"A b": 1}},
        "file, sizes: 'A b' is no name of small letters, digits and _, with a letter first; 'a_b' is one",
    ),
    ({"side": 9, "sizes": {"a": "x"}}, "file, sizes.a: 'x' is not of type 'integer'"),
    ({"side": 9, "loss": {"margin": 1}}, "file, loss: 'name' is a required property"),
    ({"side": 9, "loss": 1}, "file, loss: 1 is not of type 'object'"),
    ({"side": 9, "metrics": []}, "file, metrics: [] should be non-empty"),
    ({"side": 9, "metrics": "R@1"}, "file, metrics: 'R@1' is no list, [R@1] is one"),
    ({"side": 9, "metrics": ["RP"]}, "file, metrics: ['RP'] lacks 'R@1', which must be there; ['R@1', 'RP'] has it"),
    ({"side": 9, "metrics": ["R@1", "R@1"]}, "file, metrics: 'R@1' stands twice in ['R@1', 'R@1'], once is right"),
    ({"side": 9, "text": 3}, "file, text: 3 is a number to YAML; write it in quotes"),
    ({"side": 9, "text": None}, "file, text: null is nothing to YAML; write it in quotes"),
    ([], "file: [] is not of type 'object'"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_the_first_departure_is_refused_with_what_would_be_right(content, message):
    with pytest.raises(ValueError, match=r"^file") as refused:
        checked(Thing, content, "file")
    assert str(refused.value) == message


def test_entries_are_refused_by_their_names_too():
    with pytest.raises(ValueError, match=r"^file: 'My thing' is no name .*'my_thing' is one$"):
        checked_entries(Thing, {"My thing": {"side": 9}}, "file")
    with pytest.raises(ValueError, match=r"^file, mine\.side: 3 is less than"):
        checked_entries(Thing, {"mine": {"side": 3}}, "file")


def test_settings_are_written_as_they_were_read():
    content = {"rate": 1, "side": [9, 9], "loss": {"name": "margin", "margin": 1, "betas": [0.5, 1]}}
    written = checked(Thing, content, "file").dump()
    assert written == content
    assert type(written["rate"]) is int  # a result's digest is that of its settings as text


def test_a_function_gets_the_models_that_it_asks_for_and_all_else_as_it_is():
    def function(thing: Thing, other: dict[str, int], name: str) -> None:
        """Nothing."""

    given = {"thing": {"side": 9}, "other": {"side": 9}, "name": "mine"}
    assert typed(function, given) == {**given, "thing": Thing(side=9)}
    assert typed(function, {"thing": Thing(side=9)}) == {"thing": Thing(side=9)}
    with pytest.raises(ValueError, match=r"^thing, side: 3 is less than the minimum of 8$"):
        typed(function, {"thing": {"side": 3}})


def test_options_of_a_part_are_all_but_its_name():
    loss = checked(Thing, {"side": 9, "loss": {"name": "margin", "margin": 1}}, "file").loss
    assert (loss.name, loss.options) == ("margin", {"margin": 1})
