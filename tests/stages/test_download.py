"""A data set that is drawn may differ from its preset, as its file says."""

import pytest

from lookalike.data import read_layout
from lookalike.stages.download import draw


def test_a_data_set_is_drawn_with_the_classes_that_its_file_states(tmp_path):
    generator = {"preset": "birds", "seed": 5, "train_classes": 3, "test_classes": 4, "images_per_class": [2]}
    draw(generator, tmp_path / "birds", processes=2)
    frame = read_layout({"layout": "cub", "classes": {"train": [1, 3], "test": [4, 7]}}, tmp_path / "birds")
    assert frame.groupby("role")["label"].nunique().to_dict() == {"train": 3, "test": 4}
    assert len(frame) == 7 * 2


def test_an_unknown_preset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'bird' is unknown; known are birds, vehicles"):
        draw({"preset": "bird", "seed": 0}, tmp_path / "birds")
