"""Names of classes have one form and the order of their numbers, and no number means another class than its name."""

import pytest

from lookalike.workflow.data.class_names import by_label, in_order, one_form, remarks_on, told

NFC, NFD = "café", "cafe\u0301"


def numbered(names):
    return dict(enumerate(in_order(names), start=1))


def test_numbers_in_names_are_sorted_by_value_and_padded_ones_as_text():
    assert in_order(map(str, range(1, 13))) == [str(number) for number in range(1, 13)]
    assert in_order(["b2", "b10", "a", "a 2", "a10"]) == ["a", "a 2", "a10", "b2", "b10"]
    padded = [f"{number:03}.{name}" for number, name in enumerate(["z", "Y", "x y", "x", "x-y"] * 30)]
    assert in_order(padded[::-1]) == sorted(padded)


def test_where_all_names_are_numbers_a_number_is_the_name():
    names = numbered(map(str, range(1, 13)))
    assert by_label({"train": [1, 6], "test": [7, 12]}, names) == {"train": [1, 6], "test": [7, 12]}
    hundreds = numbered(str(number) for number in range(100, 1300, 100))
    assert by_label({"train": [100, 600], "test": [1000, 1200]}, hundreds) == {"train": [1, 6], "test": [10, 12]}
    assert by_label({"train": [0, 1]}, numbered(["0", "1", "2"])) == {"train": [1, 2]}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["100", "200", "300"],
            r"^classes\.train: no class is called 1; all names are numbers, so that it is one \(100, 200, 300\)$",
        ),
        (["1", "01", "2"], r"^classes\.train: '01' and '1' are called 1; all names are numbers"),
        (
            ["1_owl", "2_owl", "4_owl", "5_owl"],
            r"^classes\.train: \[1, 3\] may mean the names that begin with these numbers \(1_owl, 2_owl\) or places in "
            r"their order \(1_owl, 2_owl, 4_owl\); list the names$",
        ),
        (
            ["3d printer", "apple", "bench", "car"],
            r"\[1, 3\] may mean .* \(3d printer\) or places .* \(3d printer, ap",
        ),
    ],
)
def test_a_number_that_names_no_class_or_may_mean_two_is_refused(names, message):
    with pytest.raises(ValueError, match=message):
        by_label({"train": [1, 3]}, numbered(names))


@pytest.mark.parametrize(
    "names",
    [
        [f"{number}_owl" for number in range(1, 13)],
        [f"{number:03}.owl" for number in range(1, 13)],
        [f"{number:03}.owl" for number in range(51, 63)],  # a part of a data set: none begins with 1, 6, 7 or 12
        list("abcdefghijkl"),
    ],
)
def test_numbers_that_can_mean_one_thing_only_are_places(names):
    chosen = {"train": [1, 6], "test": [7, 12]}
    assert by_label(chosen, numbered(names)) == chosen


def test_names_are_found_in_either_form_and_refused_where_two_of_them_are_one():
    names = numbered([NFC, "owl", "jay"])
    assert by_label({"train": [NFD, " jay"], "test": ["owl "]}, names) == {"train": [NFC, "jay"], "test": ["owl"]}
    for chosen in ({"train": [NFC], "test": [NFD]}, {"train": ["owl", "owl "]}):
        with pytest.raises(ValueError, match=r"^classes: .* and .* are one name, and name one class$"):
            by_label(chosen, names)


def test_one_name_in_two_forms_is_told_and_names_that_differ_by_case_or_by_what_cannot_be_seen():
    assert one_form(f" {NFD}\u00a0") == NFC
    assert remarks_on([NFC, NFD, "owl"]) == [
        r"'cafe\u0301' and 'caf\xe9' are one name, written in 2 forms, and one class: 'café'"
    ]
    assert remarks_on(["b", "b ", "c"]) == ["'b' and 'b ' are one name, written in 2 forms, and one class: 'b'"]
    for pair in (["Owl", "owl"], ["owl", "owl\u200b"], ["owl", "\uff4fwl"], ["snow owl", "snow\u00a0owl"]):
        assert remarks_on(pair)[0].endswith(" are 2 classes, though their names differ by case or form alone")
    assert not remarks_on(["owl", "owls", "jay"])


def test_the_classes_of_a_role_are_told_by_number_and_first_names():
    assert told("train", map(str, range(1, 13))) == "train: 12 classes, 1, 2, 3, ... 12"
    assert told("test", ["owl"]) == "test: 1 class, owl"
