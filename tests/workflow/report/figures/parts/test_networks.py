"""Pictures as figures read them: crops, objects, and points that move with them."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import ExifTags, Image

from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.report.figures.parts.networks import Pictures, read_pictures, share_on
from lookalike.workflow.report.figures.parts.tiles import TILE_PX, cells, grid, photograph
from lookalike.workflow.report.figures.sam.gradcam import grad_cam
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.images import Images


def picture(folder, width, height, name="a.png", spot=None):
    pixels = np.zeros((height, width, 3), np.uint8)
    if spot is not None:
        x, y = spot
        pixels[y - 3 : y + 4, x - 3 : x + 4] = 255
    Image.fromarray(pixels).save(folder / name)
    return name


@pytest.mark.parametrize(("width", "height"), [(120, 90), (90, 120), (101, 77)])
@pytest.mark.parametrize("resize", [64, None])
def test_a_point_lies_where_the_crop_shows_it(tmp_path, width, height, resize):
    spot = (width // 2 + 9, height // 2 - 7)
    name, view = picture(tmp_path, width, height, spot=spot), View(resize_px=resize, crop_px=56)
    pictures = Pictures(pd.DataFrame({"path": [name], "label": [0]}), tmp_path, view)
    bright = torch.from_numpy(Images([tmp_path / name], view)[0, 0][0][..., 0].astype(float))
    rows, columns = torch.meshgrid(torch.arange(56) + 0.5, torch.arange(56) + 0.5, indexing="ij")
    centre = torch.stack([(bright * columns).sum(), (bright * rows).sum()]) / bright.sum()
    [moved] = pictures.points(0, torch.tensor([[spot[0] + 0.5, spot[1] + 0.5]]))
    assert torch.allclose(moved.double(), centre, atol=0.2)


def test_objects_are_masks_else_boxes_else_unknown(tmp_path):
    view = View(resize_px=None, crop_px=20)
    name = picture(tmp_path, 20, 20)
    mask = np.zeros((20, 20), np.uint8)
    mask[5:10, 2:4] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    box = {"box_x": 2.0, "box_y": 5.0, "box_width": 2.0, "box_height": 5.0}
    for columns in ({"mask": "mask.png"}, box):
        pictures = Pictures(pd.DataFrame([{"path": name, "label": 0, **columns}]), tmp_path, view)
        assert torch.equal(pictures.objects([0])[0], torch.from_numpy(mask > 0))
    assert Pictures(pd.DataFrame([{"path": name, "label": 0}]), tmp_path, view).objects([0]) is None


def test_objects_and_points_follow_a_picture_that_its_camera_noted_as_turned(tmp_path):
    notes = Image.Exif()
    notes[ExifTags.Base.Orientation] = 6  # stored lying: shown 20 wide and 30 high
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / "turned.jpg", exif=notes)
    box = {"box_x": 2.0, "box_y": 24.0, "box_width": 3.0, "box_height": 4.0}
    rows = pd.DataFrame([{"path": "turned.jpg", "label": 0, **box}])
    pictures = Pictures(rows, tmp_path, View(resize_px=None, crop_px=20))
    assert pictures.points(0, torch.tensor([[2.0, 24.0]])).tolist() == [[2.0, 19.0]]
    [seen] = pictures.objects([0])
    assert seen.nonzero().tolist() == [[19, 2], [19, 3], [19, 4]]


def test_a_crop_that_is_not_square_is_refused():
    run = Run("sam", "cub", "birds", 0, "model", "x", manifest="x.csv")
    with pytest.raises(ValueError, match="square crops only"):
        read_pictures(run, View(resize_px=64, crop_px=[96, 32]))


def test_the_share_on_an_object_is_of_the_whole_attention():
    heat = torch.tensor([[[1.0, 3.0]], [[0.0, 0.0]]])
    shares = share_on(heat, torch.tensor([[[False, True]], [[True, True]]]))
    assert shares[0] == 0.75
    assert shares[1].isnan()


def test_a_map_comes_back_from_its_cells():
    heat = torch.arange(6.0).view(2, 3)
    rows = cells(heat, panel="map").sample(frac=1, random_state=0)
    assert (grid(rows) == heat.numpy()).all()
    assert set(rows["panel"]) == {"map"}


def test_a_photograph_is_the_crop_at_the_size_of_a_tile(tmp_path):
    Image.fromarray(np.full((30, 40, 3), 200, np.uint8)).save(tmp_path / "a.png")
    shown = photograph(pd.DataFrame([{"picture": str(tmp_path / "a.png"), "resize_px": np.nan, "crop_px": 24}]))
    assert shown.shape == (TILE_PX, TILE_PX, 3)
    assert (shown == 200).all()


def test_grad_cam_of_a_linear_classifier_is_the_map_of_its_weights():
    generator = torch.Generator().manual_seed(0)
    maps = torch.rand(2, 5, 3, 4, generator=generator, dtype=torch.float64)
    weight = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    found = grad_cam(maps, lambda images: images.mean(dim=(-2, -1)) @ weight.T)
    for image in range(2):
        scores = [sum(weight[c, k] * maps[image, k].mean() for k in range(5)) for c in range(7)]
        best = max(range(7), key=lambda c, scores=scores: scores[c])
        expected = sum(weight[best, k] / 12 * maps[image, k] for k in range(5)).clamp(min=0)
        assert torch.allclose(found[image], expected, atol=1e-12)
