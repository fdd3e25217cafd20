"""A folder is searched by any model, looking only at what is new."""

import os
import shutil
from itertools import pairwise

import numpy as np
import pillow_heif
import pytest
import torch
from PIL import Image

import lookalike
from lookalike.app.own import search as searching
from lookalike.app.own.picture_files import read_image
from lookalike.app.own.search import open_gallery
from own_pictures import opened, write_pictures

KINDS = [
    ("embedder", "cosine"),
    ("embedder", "structure"),
    ("diml", "structure"),
    ("diml", "cosine"),
    ("avsl", "graph"),
]


def slow_scores(model, way, query, paths):
    """The measure of each picture, one pair at a time."""
    network = model.network
    images = [read_image(model, path)[None] for path in (query, *paths)]
    with torch.no_grad():
        if way == "graph":
            seen = [network(image) for image in images]
            return [-float(network.distance(seen[0], other)) for other in seen[1:]]
        located = searching.way_of(network, way)[1].keep
        seen = [located(network, image) for image in images]
        scores = [float((seen[0]["embedding"] * other["embedding"]).sum()) for other in seen[1:]]
        if way == "structure":
            pairs = [lookalike.explain(network, images[0], other, method="structure").value for other in images[1:]]
            scores = [score + float(value) for score, value in zip(scores, pairs, strict=True)]
        return scores


@pytest.mark.parametrize("name", ["f" * 250, "\u00e9" * 125, "f" + "\u6d77" * 83])
def test_a_folder_with_a_name_as_long_as_any_is_searched_and_known_again(tmp_path, name):
    paths = write_pictures(tmp_path / name, 4)
    for new in (4, 0):
        gallery = open_gallery(opened(), tmp_path / name, store=tmp_path / "store")
        assert (gallery.new, len(gallery.search(paths[0]))) == (new, 3)


@pytest.mark.parametrize(("kind", "way"), KINDS)
def test_hits_are_those_of_comparing_pair_by_pair(tmp_path, kind, way):
    paths = write_pictures(tmp_path / "pictures", 10)
    model = opened(kind)
    gallery = open_gallery(model, tmp_path / "pictures", store=tmp_path / "store", way=way)
    query, others = paths[4], [path for path in sorted(paths) if path != paths[4]]
    hits = gallery.search(query, top=9)
    scores = slow_scores(model, way, query, others)
    sign = -1 if way == "graph" else 1
    expected = {path: sign * score for path, score in zip(others, scores, strict=True)}
    assert {hit.path for hit in hits} == set(others)
    # Places are kept in half precision, so that near ties may change their order.
    tolerance = 1e-3 if way == "structure" else 1e-5
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.path], abs=tolerance)
    found = [sign * expected[hit.path] for hit in hits]
    assert all(one >= other - 2 * tolerance for one, other in pairwise(found))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=sign > 0)


def test_pictures_of_a_colour_come_first(tmp_path):
    paths = write_pictures(tmp_path, 24)
    gallery = open_gallery(opened(), tmp_path, store=tmp_path / ".store")
    right = [int(hit.path.stem) % 4 == 1 for hit in gallery.search(paths[5], top=3)]
    assert sum(right) >= 2


def test_only_new_and_changed_pictures_are_looked_at_again(tmp_path):
    paths = write_pictures(tmp_path / "pictures", 8)
    again = {"folder": tmp_path / "pictures", "store": tmp_path / "store"}
    assert open_gallery(opened(), **again).new == 8
    assert open_gallery(opened(), **again).new == 0
    shutil.copy(paths[0], tmp_path / "pictures" / "new.png")
    shutil.copy(paths[1], paths[2])
    os.utime(paths[2], ns=(5, 5))
    paths[3].unlink()
    gallery = open_gallery(opened(), **again)
    assert (gallery.new, len(gallery.index)) == (2, 8)
    hits = gallery.search(paths[1], top=8)
    assert hits[0].path == paths[2] and hits[0].score == pytest.approx(1, abs=1e-5)
    assert paths[3] not in [hit.path for hit in hits]
    assert hits == open_gallery(opened(), folder=again["folder"], store=tmp_path / "fresh").search(paths[1], top=8)


def test_an_index_of_another_model_or_way_or_folder_is_another_index(tmp_path):
    write_pictures(tmp_path / "pictures", 4)
    write_pictures(tmp_path / "elsewhere" / "pictures", 4)
    store = {"store": tmp_path / "store"}
    assert open_gallery(opened(), tmp_path / "pictures", **store).new == 4
    assert open_gallery(opened(digest="b"), tmp_path / "pictures", **store).new == 4
    assert open_gallery(opened(), tmp_path / "pictures", way="structure", **store).new == 4
    assert open_gallery(opened(), tmp_path / "elsewhere" / "pictures", **store).new == 4
    assert open_gallery(opened(), tmp_path / "pictures", **store).new == 0


def test_a_killed_call_keeps_what_was_written(tmp_path, monkeypatch):
    paths = write_pictures(tmp_path / "pictures", 7)
    monkeypatch.setattr(searching, "TOGETHER", 3)
    again = {"folder": tmp_path / "pictures", "store": tmp_path / "store"}
    write, written = searching.write_part, []

    def killed(*args):
        if written:
            raise KeyboardInterrupt
        written.append(args)
        return write(*args)

    monkeypatch.setattr(searching, "write_part", killed)
    with pytest.raises(KeyboardInterrupt):
        open_gallery(opened(), **again)
    monkeypatch.setattr(searching, "write_part", write)
    gallery = open_gallery(opened(), **again)
    assert (gallery.new, len(gallery.index)) == (4, len(paths))


def test_pictures_that_cannot_be_read_are_named_and_tried_again(tmp_path):
    paths = write_pictures(tmp_path / "pictures", 5)
    whole = paths[2].read_bytes()
    paths[2].write_bytes(whole[:50])
    again = {"folder": tmp_path / "pictures", "store": tmp_path / "store"}
    gallery = open_gallery(opened(), **again)
    assert len(gallery.index) == 4 and gallery.new == 4
    assert len(gallery.unreadable) == 1 and "002.png: no readable picture" in gallery.unreadable[0]
    with pytest.raises(ValueError, match=r"002\.png: no readable picture"):
        gallery.search(paths[2])
    paths[2].write_bytes(whole)
    gallery = open_gallery(opened(), **again)
    assert (gallery.new, gallery.unreadable) == (1, [])


def test_a_folder_of_which_nothing_can_be_read_and_foolish_numbers_are_refused(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.jpg").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"broken: none of its 1 pictures can be read; the first: .*a\.jpg"):
        open_gallery(opened(), tmp_path / "broken", store=tmp_path / "store")
    paths = write_pictures(tmp_path / "pictures", 3)
    gallery = open_gallery(opened(), tmp_path / "pictures", store=tmp_path / "store")
    with pytest.raises(ValueError, match="top=0: at least one"):
        gallery.search(paths[0], top=0)
    assert len(gallery.search(paths[0], top=50)) == 2
    for kind, way in (("embedder", "graph"), ("avsl", "cosine"), ("parts", "structure")):
        with pytest.raises(ValueError, match=f"way: unknown '{way}'"):
            open_gallery(opened(kind), tmp_path / "pictures", store=tmp_path / "store", way=way)


def test_no_cosine_of_equal_pictures_is_above_one(tmp_path):
    paths = write_pictures(tmp_path, 24)
    for path in paths:
        shutil.copy(path, path.with_stem(f"{path.stem}_again"))
    gallery = open_gallery(opened(), tmp_path, store=tmp_path / ".store")
    scores = [gallery.search(path, top=1)[0].score for path in paths]
    assert max(scores) <= 1 == pytest.approx(min(scores))


def test_equal_pictures_come_by_name(tmp_path):
    paths = write_pictures(tmp_path / "pictures", 1)
    for name in ("c.png", "a.png", "b.png"):
        shutil.copy(paths[0], tmp_path / "pictures" / name)
    gallery = open_gallery(opened(), tmp_path / "pictures", store=tmp_path / "store")
    assert [hit.path.name for hit in gallery.search(paths[0])] == ["a.png", "b.png", "c.png"]


@pytest.mark.parametrize("kind", ["avif", "heic", "jfif", "jp2", "tga"])
def test_pictures_of_any_kind_that_is_read_are_searched_and_found(tmp_path, kind):
    pillow_heif.register_heif_opener()  # which writes, too
    paths = write_pictures(tmp_path, 8)
    other = paths[2].with_suffix(f".{kind}")
    Image.open(paths[2]).save(other)
    paths[2].unlink()
    gallery = open_gallery(opened(), tmp_path, store=tmp_path / ".store")
    assert not gallery.unreadable
    assert other in {hit.path for hit in gallery.search(paths[3], top=7)}


def test_pictures_that_are_not_used_are_told_with_the_reason(tmp_path):
    write_pictures(tmp_path, 4)
    (tmp_path / "raw.cr2").write_bytes(b"II*")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "elsewhere.jpg")
    told = open_gallery(opened(), tmp_path, store=tmp_path / ".store").unreadable
    assert len(told) == 2
    assert "gone.jpg: no readable picture ([Errno 2] No such file" in told[0]
    assert told[1].endswith("raw.cr2: no readable picture (.cr2 is not read; save it as JPEG or PNG)")


def test_what_is_called_like_a_picture_and_is_no_file_is_told(tmp_path):
    write_pictures(tmp_path, 4)
    os.mkfifo(tmp_path / "pipe.jpg")
    [told] = open_gallery(opened(), tmp_path, store=tmp_path / ".store").unreadable
    assert told.endswith("pipe.jpg: no readable picture (it is no file)")


def two_bitmaps(folder):
    """A query, and two bitmaps of one size and time of which only the first looks like it."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for name, colour in (("query.bmp", 200), ("near.bmp", 200), ("far.bmp", 40)):
        pixels = (np.array([colour, 120, 240 - colour]) + generator.integers(-9, 10, (32, 32, 3))).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name)
        os.utime(folder / name, ns=(10**18, 10**18))
    return [folder / name for name in ("query.bmp", "near.bmp", "far.bmp")]


def swapped_by_name(one, other):
    spare = one.with_suffix(".part")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


def swapped_by_bytes(one, other):
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def swapped_by_copies(one, other):
    shutil.copy2(one, one.with_suffix(".part"))
    shutil.copy2(other, one)
    shutil.copy2(one.with_suffix(".part"), other)
    one.with_suffix(".part").unlink()


@pytest.mark.parametrize("swapped", [swapped_by_name, swapped_by_bytes, swapped_by_copies])
def test_pictures_that_are_swapped_with_equal_size_and_time_are_looked_at_again(tmp_path, swapped):
    query, near, far = two_bitmaps(tmp_path / "pictures")
    again = {"folder": tmp_path / "pictures", "store": tmp_path / "store"}
    assert [hit.path for hit in open_gallery(opened(), **again).search(query)] == [near, far]
    before = [(path.stat().st_size, path.stat().st_mtime_ns) for path in (near, far)]
    swapped(near, far)
    for path in (near, far):
        os.utime(path, ns=(10**18, 10**18))
    assert [(path.stat().st_size, path.stat().st_mtime_ns) for path in (near, far)] == before
    gallery = open_gallery(opened(), **again)
    assert gallery.new == 2
    assert [hit.path for hit in gallery.search(query)] == [far, near]


def test_a_model_that_makes_no_number_of_a_picture_is_refused_by_the_pictures_name(tmp_path):
    paths = write_pictures(tmp_path / "pictures", 3)
    model, broken = opened(), opened(digest="b")
    with torch.no_grad():
        broken.network.head.bias[0] = torch.nan
    with pytest.raises(ValueError, match=r"000\.png, seen by untrained embedder: embedding holds NaN or infinity"):
        open_gallery(broken, tmp_path / "pictures", store=tmp_path / "store")
    gallery = open_gallery(model, tmp_path / "pictures", store=tmp_path / "store")
    with torch.no_grad():
        model.network.head.bias[0] = torch.inf
    with pytest.raises(ValueError, match=r"001\.png, seen by untrained embedder: embedding holds NaN or infinity"):
        gallery.search(paths[1])


@pytest.mark.parametrize(("kind", "way"), KINDS)
def test_several_queries_are_seen_together_and_find_what_each_finds_alone(tmp_path, monkeypatch, kind, way):
    paths = write_pictures(tmp_path / "pictures", 7)
    gallery = open_gallery(opened(kind), tmp_path / "pictures", store=tmp_path / "store", way=way)
    alone = [gallery.search(path, top=3) for path in paths]
    seen = []
    keep = searching._kept
    monkeypatch.setattr(searching, "_kept", lambda model, way, images, some: seen.append(len(images)) or keep(
        model, way, images, some
    ))  # fmt: skip
    together = gallery.search(paths, top=3)
    assert seen == [7]
    assert [[hit.path for hit in hits] for hits in together] == [[hit.path for hit in hits] for hits in alone]
    for hits, others in zip(together, alone, strict=True):
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in others], abs=1e-5)
    monkeypatch.setattr(searching, "BATCH", 3)
    assert len(gallery.search(paths)) == 7 and seen[1:] == [3, 3, 1]
    assert gallery.search([]) == []
    assert gallery.search(str(paths[0]), top=3) == alone[0]


def test_one_of_several_queries_that_cannot_be_read_is_named(tmp_path):
    paths = write_pictures(tmp_path / "pictures", 3)
    gallery = open_gallery(opened(), tmp_path / "pictures", store=tmp_path / "store")
    with pytest.raises(ValueError, match=r"nowhere\.png: no readable picture"):
        gallery.search([paths[0], tmp_path / "nowhere.png"])
    with pytest.raises(ValueError, match=r"https://example.org/a.jpg: is an address"):
        gallery.search("https://example.org/a.jpg")
    with pytest.raises(ValueError, match="top=0: at least one"):
        gallery.search(paths, top=0)
