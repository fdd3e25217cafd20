"""What the pair explorer reads is plain, and safe to stand in a script."""

import json
from itertools import pairwise

from lookalike.reports.page.explorer import assigned, called, colours, view_key


def test_a_value_of_javascript_is_one_line_and_says_what_it_was_given():
    value = {"b": [1, None, True], "a": "line\nbreak \u2028 é"}
    line = assigned("const IT", value)
    assert line.startswith("const IT = ")
    assert line.isascii()
    assert line.count("\n") == 1
    assert json.loads(line.removeprefix("const IT = ").rstrip(";\n")) == value


def test_colours_grow_lighter_in_even_steps():
    light = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in colours()]
    assert light == sorted(light)
    assert max(after - before for before, after in pairwise(light)) < 12


def test_a_picture_is_called_as_its_file_and_a_view_by_its_sizes():
    assert called("a/b.c/Northern_Finch_01.jpg") == "Northern Finch 01"
    assert view_key({"resize_px": 28, "crop_px": 24}) == "[28, 24]"
    assert view_key({"crop_px": [96, 32]}) == "[null, [96, 32]]"
