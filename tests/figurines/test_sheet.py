from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from figurines import contact_sheet


def test_a_sheet_has_two_rows_for_each_family(tmp_path):
    path = tmp_path / "sheets" / "birds.png"
    contact_sheet("birds", path, families=2, columns=3, tile_px=32, gap_px=2)
    with Image.open(path) as sheet:
        assert sheet.size == (3 * 34 - 2, 4 * 34 - 2)


def test_people_on_foot_are_shown_from_head_to_feet_with_margins(tmp_path):
    contact_sheet("people", tmp_path / "people.png", families=1, columns=1, tile_px=96, gap_px=0)
    with Image.open(tmp_path / "people.png") as sheet:
        tile = np.asarray(sheet)[:96]
    assert (tile[:, :20] == 255).all()
    assert (tile[:, -20:] == 255).all()
    assert not (tile[[0, -1], 40:56] == 255).all(axis=-1).any()


def test_more_families_than_there_are_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"families=13 is outside \[1, 12\], the families of products"):
        contact_sheet("products", tmp_path / "sheet.png", families=13)


def test_a_sheet_of_an_unknown_preset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'trees' is unknown"):
        contact_sheet("trees", tmp_path / "sheet.png")
