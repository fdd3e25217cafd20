"""An index holds what was kept of each picture, and only what is still there counts."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from lookalike.app.own import index as indexes
from lookalike.app.own.index import Index, read_parts, tidied, write_part
from lookalike.app.own.picture_files import Stamp
from lookalike.base.files import write_tensors


def stamps(*numbers, changed=1, renewed=1):
    return [Stamp(f"{number:03}.png", 10, changed, renewed) for number in numbers]


def kept(*numbers):
    """What is kept of pictures: their numbers."""
    return {"embedding": torch.tensor([[float(number), 1.0] for number in numbers])}


def numbers_of(index):
    return index.scored(lambda part: part["embedding"][:, 0]).tolist()


def test_what_is_written_is_read_and_scores_stand_in_the_order_of_the_list(tmp_path):
    write_part(tmp_path, "m", stamps(4, 1, 7), kept(4, 1, 7))
    write_part(tmp_path, "m", stamps(2, 5), kept(2, 5))
    index = Index(stamps(1, 2, 4, 5, 7), read_parts(tmp_path, "m"))
    assert numbers_of(index) == [1, 2, 4, 5, 7]
    assert index.rows(torch.tensor([3, 0]))["embedding"][:, 0].tolist() == [5, 1]
    assert index.stamps == stamps(1, 2, 4, 5, 7)


def test_changed_and_removed_pictures_do_not_count(tmp_path):
    parts = [write_part(tmp_path, "m", stamps(1, 2, 3), kept(1, 2, 3))]
    index = Index([*stamps(1), *stamps(2, changed=2)], parts)
    assert numbers_of(index) == [1]
    assert len(index) == 1


def test_files_without_any_picture_of_the_list_go(tmp_path):
    parts = [write_part(tmp_path, "m", stamps(1), kept(1)), write_part(tmp_path, "m", stamps(2), kept(2))]
    index = tidied(tmp_path, "m", stamps(2), parts)
    assert numbers_of(index) == [2]
    assert [path.name for path in tmp_path.glob("*.safetensors")] == [parts[1].path.name]


def test_small_files_become_one_without_a_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(indexes, "TOGETHER", 4)
    groups = [(1, 2), (3, 4, 5, 6), (7, 8), (9,)]
    parts = [write_part(tmp_path, "m", stamps(*each), kept(*each)) for each in groups]
    index = tidied(tmp_path, "m", stamps(*range(1, 10)), parts)
    assert numbers_of(index) == list(range(1, 10))
    read = read_parts(tmp_path, "m")
    assert sorted(len(part.stamps) for part in read) == [1, 4, 4]
    assert numbers_of(Index(stamps(*range(1, 10)), read)) == list(range(1, 10))


def test_a_broken_file_is_removed_and_one_of_another_model_refused(tmp_path):
    part = write_part(tmp_path, "m", stamps(1, 2), kept(1, 2))
    part.path.write_bytes(part.path.read_bytes()[:-8])
    assert read_parts(tmp_path, "m") == []
    assert not part.path.exists()
    part = write_part(tmp_path, "other", stamps(1), kept(1))
    with pytest.raises(ValueError, match=rf"{part.path.name} was made by another model .other.; remove it"):
        read_parts(tmp_path, "m")
    write_tensors(part.path, kept(1), {})
    with pytest.raises(ValueError, match="was made by another model"):
        read_parts(tmp_path, "m")


def test_names_of_any_language_and_bytes_are_kept(tmp_path):
    named = [Stamp("über/海.png", 1, 2, 3), Stamp("bad\udcff.png", 4, 5, 6)]
    write_part(tmp_path, "m", named, kept(0, 1))
    assert read_parts(tmp_path, "m")[0].stamps == named


def test_a_picture_of_which_only_the_time_of_the_file_is_another_does_not_count(tmp_path):
    parts = [write_part(tmp_path, "m", stamps(1, 2), kept(1, 2))]
    assert numbers_of(Index([*stamps(1), *stamps(2, renewed=2)], parts)) == [1]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_kept_must_be_finite_when_it_is_written_and_when_it_is_used(tmp_path, value):
    with pytest.raises(ValueError, match=r"safetensors: embedding holds NaN or infinity"):
        write_part(tmp_path, "m", stamps(1), {"embedding": torch.tensor([[value, 1.0]])})
    assert list(tmp_path.iterdir()) == []
    part = write_part(tmp_path, "m", stamps(1, 2), kept(1, 2))
    tensors, header = load_file(part.path), {"about": '{"model": "m"}'}
    tensors["embedding"][1, 0] = value
    save_file(tensors, part.path, header)
    index = Index(stamps(1, 2), read_parts(tmp_path, "m"))
    said = rf"{part.path.name} \(remove it, and its pictures are looked at again\): embedding holds NaN or infinity"
    with pytest.raises(ValueError, match=said):
        numbers_of(index)
    with pytest.raises(ValueError, match=said):
        index.rows(torch.tensor([1]))
    assert index.rows(torch.tensor([0]))["embedding"].tolist() == [[1.0, 1.0]]
