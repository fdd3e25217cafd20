"""Batches are the same whatever loads them.

Runs share decoded pictures of the same split and view, and see what they would have decoded.
"""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from lookalike.workflow.data.decoded import fixed_keys
from lookalike.workflow.settings.recipes import TrainingView, View
from lookalike.workflow.training.images import (
    DEVIATION,
    MEAN,
    Decoder,
    Images,
    Loader,
    RandomView,
    batches,
    fixed_part,
    in_order,
    seen_part,
)
from lookalike.workflow.training.roles import read_role
from trainings import section, write_dataset

RANDOM = TrainingView(resize_px=None, crop_px=16, scale=[0.3, 1.0], ratio=[0.75, 1.33], flip=0.5)
TRAINED, TESTED = section("embedder").image, section("embedder").test_image
CPU = torch.device("cpu")


@pytest.fixture
def paths(tmp_path):
    generator = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(generator.integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    return sorted(tmp_path.iterdir())


def changed(view, **values):
    """Another view of the same kind."""
    return type(view)(**{**view.dump(), **values})


def load(paths, view, **options):
    pictures = [batch for batch, _ in batches(Images(paths, view), in_order(len(paths), 4), device=CPU, **options)]
    return torch.cat(pictures)


@pytest.mark.parametrize("size", [(30, 50), (64, 40), (24, 24)])
@pytest.mark.parametrize(
    "sizes", [(28, 24), (None, 20), ([40, 30], 24), (24, 24), (None, [12, 36]), (None, [36, 12]), ([40, 30], None)]
)
def test_the_part_that_a_view_sees_is_what_it_leaves_of_the_picture(size, sizes):
    (resize, crop), (height, width) = sizes, size
    rows, columns = np.mgrid[:height, :width]
    # Green and blue say where a pixel comes from, red that it is no padding.
    pixels = np.stack([np.full(size, 255), 255 * (rows + 0.5) / height, 255 * (columns + 0.5) / width], axis=2)
    view = View.model_construct(resize_px=resize, crop_px=crop or resize, interpolation="bilinear")
    seen = np.asarray(fixed_part(view)(Image.fromarray(pixels.astype(np.uint8)))) / 255
    left, top, across, down = seen_part(view, size)
    inside = seen[..., 0] > 0.99
    expected_top = top + down * (np.arange(len(seen)) + 0.5) / len(seen)
    expected_left = left + across * (np.arange(seen.shape[1]) + 0.5) / seen.shape[1]
    assert np.abs((seen[..., 1] - expected_top[:, None])[inside]).max() < 0.03
    assert np.abs((seen[..., 2] - expected_left[None, :])[inside]).max() < 0.03


def test_loading_processes_change_nothing(paths):
    assert torch.equal(load(paths, RANDOM, seed=3), load(paths, RANDOM, seed=3, workers=2))


def test_the_seed_decides_the_crops_and_leaves_the_global_generator_alone(paths):
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    assert not torch.equal(load(paths, RANDOM, seed=3), load(paths, RANDOM, seed=4))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_same_picture_is_cropped_differently_at_two_places(paths):
    images = Images(paths, RANDOM)
    (first, _), (second, _) = (list(batches(images, [[0, 1], [1, 0]], seed=1, device=CPU))[place] for place in (0, 1))
    assert not torch.equal(first[0], second[1])


def test_the_test_view_is_the_normalised_centre(paths):
    picture = np.asarray(Image.open(paths[0]), dtype=np.float64)[4:20, 8:24] / 255
    expected = (picture - MEAN) / DEVIATION
    loaded = load(paths, View(resize_px=None, crop_px=16), seed=0)[0].permute(1, 2, 0).double().numpy()
    assert np.abs(loaded - expected).max() < 1e-6


@pytest.mark.parametrize("interpolation", ["bicubic", "lanczos", "nearest"])
def test_a_view_resizes_by_its_filter(interpolation):
    picture = Image.effect_noise((60, 40), 90).convert("RGB")
    view = View(resize_px=20, crop_px=16, interpolation=interpolation)
    expected = picture.resize((30, 20), Image.Resampling[interpolation.upper()]).crop((7, 2, 23, 18))
    assert np.array_equal(np.asarray(fixed_part(view)(picture)), np.asarray(expected))
    assert fixed_keys(view) != fixed_keys(View(resize_px=20, crop_px=16))


def test_grey_pictures_and_palettes_become_colour(tmp_path):
    Image.new("L", (20, 20), 100).save(tmp_path / "grey.png")
    Image.new("P", (20, 20), 1).save(tmp_path / "palette.png")
    assert load(sorted(tmp_path.iterdir()), View(resize_px=None, crop_px=16), seed=0).shape == (2, 3, 16, 16)


def test_a_broken_picture_is_named(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"broken\.jpg: no readable picture"):
        load([tmp_path / "broken.jpg"], View(resize_px=None, crop_px=16), seed=0)


DEAD = "a process that loads pictures was killed (out of memory?)"
OF_A_PICTURE = "Caught EOFError in DataLoader worker process 0."  # as torch hands it on


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "), DEAD),
        (ConnectionResetError(104, "Connection reset by peer"), DEAD),  # where its end is not seen yet
        (EOFError(), DEAD),
        (EOFError(OF_A_PICTURE), OF_A_PICTURE),
        (RuntimeError("stack expects each tensor to be equal size"), "stack expects each tensor to be equal size"),
    ],
)
def test_a_loading_process_that_died_is_told_as_such_and_nothing_else_is(paths, monkeypatch, error, told):
    loader = Loader(Images(paths, RANDOM), device=CPU)

    def failing():
        yield torch.zeros(2, 16, 16, 3, dtype=torch.uint8), torch.arange(2)
        raise error

    monkeypatch.setattr(loader, "_loader", failing())
    loaded = loader.batches([[0, 1], [2, 3]], seed=0)
    next(loaded)
    with pytest.raises(type(error) if told != DEAD else RuntimeError) as raised:
        next(loaded)
    assert str(raised.value) == told


def test_a_pair_of_sides_is_height_and_width_whatever_the_proportions(paths):
    view = View(resize_px=[24, 10], crop_px=[24, 10])
    loaded = load(paths, view, seed=0)
    assert loaded.shape == (6, 3, 24, 10)
    expected = np.asarray(Image.open(paths[0]).resize((10, 24), Image.Resampling.BILINEAR), dtype=np.float64) / 255
    found = loaded[0].permute(1, 2, 0).double().numpy() * DEVIATION + MEAN
    assert np.abs(found - expected).max() < 1.01 / 255
    for each in (view, RANDOM):
        assert load(paths, changed(each, crop_px=[20, 8]), seed=0).shape == (6, 3, 20, 8)


def test_a_random_view_without_a_scale_is_the_centre_or_its_mirror_image(paths):
    sides = {"resize_px": [24, 8], "crop_px": [24, 8]}
    plain = load(paths, View(**sides), seed=0)
    mirrored = plain.flip(3)
    seen = set()
    for seed in range(6):
        flipped = load(paths, TrainingView(**sides, scale=None, ratio=None, flip=0.5), seed=seed)
        for one, two, picture in zip(plain, mirrored, flipped, strict=True):
            assert torch.equal(picture, one) or torch.equal(picture, two)
            seen.add(torch.equal(picture, one))
    assert seen == {True, False}


def test_pairs_of_equal_sides_change_no_random_crop(paths):
    square, pair = (changed(RANDOM, crop_px=crop) for crop in (16, [16, 16]))
    assert torch.equal(load(paths, square, seed=5), load(paths, pair, seed=5))


@pytest.mark.parametrize("crop", [16, [20, 8]])
@pytest.mark.parametrize("scale", [[0.3, 1.0], None])
def test_a_random_view_is_that_of_torchvision_with_the_same_draws(paths, crop, scale):
    view = changed(RANDOM, crop_px=crop, scale=scale)
    part = v2.CenterCrop(crop) if scale is None else v2.RandomResizedCrop(crop, scale=(0.3, 1.0), ratio=(0.75, 1.33))
    whole = v2.Compose([part, v2.RandomHorizontalFlip(0.5)])
    ours = RandomView(view)
    for path, seed in itertools.product(paths, range(5)):
        picture = Image.open(path).convert("RGB")
        torch.manual_seed(seed)
        expected, state = whole(picture), torch.random.get_rng_state()
        torch.manual_seed(seed)
        assert np.array_equal(np.asarray(ours(np.asarray(picture))), np.asarray(expected))
        assert torch.equal(torch.random.get_rng_state(), state)


VIEWS = {
    "random": TRAINED,
    "random, original size": changed(TRAINED, resize_px=None),
    "centre or its mirror image": changed(TRAINED, scale=None, ratio=None),
    "centre": TESTED,
}


@pytest.fixture
def split(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 3, "test": 2})
    return {"manifest": manifest, "root": tmp_path}


def decoder(tmp_path, **over):
    return Decoder(**{"folder": str(tmp_path / "decoded"), "limit_gb": 1, **over})


def loaded(images, workers=0):
    loader = Loader(images, device=CPU, workers=workers)
    return torch.cat([batch for batch, _ in loader.batches(in_order(len(images), 4), seed=3)])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_run_sees_what_it_would_have_decoded(split, tmp_path, view, workers):
    paths = read_role(**split, role="train").paths
    found = decoder(tmp_path).pictures(paths, view, **split)
    assert len(found) == 1
    expected = loaded(Images(paths, view))
    for path in paths:
        path.unlink()
    assert torch.equal(loaded(Images(paths, view, found), workers), expected)


def test_views_that_differ_only_in_what_is_random_share_one_file(split, tmp_path):
    paths = read_role(**split, role="train").paths
    others = [changed(TRAINED, crop_px=20), changed(TRAINED, scale=[0.2, 0.4], flip=0.0)]
    for view in (TRAINED, *others):
        decoder(tmp_path).pictures(paths, view, **split)
    assert len([path for path in (tmp_path / "decoded").iterdir() if path.is_dir()]) == 1
    decoder(tmp_path).pictures(paths, changed(TRAINED, resize_px=26), **split)
    decoder(tmp_path).pictures(paths[1:], TRAINED, **split)
    split["manifest"].write_text(split["manifest"].read_text() + "\n")
    decoder(tmp_path).pictures(paths, TRAINED, **split)
    assert len([path for path in (tmp_path / "decoded").iterdir() if path.is_dir()]) == 4


def test_without_a_folder_or_a_limit_nothing_is_kept(split, tmp_path):
    paths = read_role(**split, role="test").paths
    for nowhere in (Decoder(), decoder(tmp_path, limit_gb=0), decoder(tmp_path, limit_gb=1e-6)):
        assert nowhere.pictures(paths, TESTED, **split) == []


def test_test_pictures_that_are_decoded_need_no_process_of_their_own(split, tmp_path):
    paths = read_role(**split, role="test").paths
    found = decoder(tmp_path).pictures(paths, TESTED, **split)
    assert Images(paths, TESTED, found).is_memory
    assert not Images(paths, TESTED).is_memory
    assert not Images(paths, TRAINED, found).is_memory
