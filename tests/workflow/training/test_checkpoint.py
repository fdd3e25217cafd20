"""The state of an unfinished training is whole, or it is not used; and it is left where a training is broken off."""

import pytest
import torch

from disks import small_disk
from lookalike.workflow.training.checkpoint import ResumeFile, kept_aside

STATE = {"epoch": 3, "last": {"weight": torch.arange(500.0)}}


def test_a_state_comes_back_as_it_was(tmp_path):
    ResumeFile(tmp_path / "state", "x").write(STATE)
    found = ResumeFile(tmp_path / "state", "x").read()
    assert found["epoch"] == 3
    assert torch.equal(found["last"]["weight"], STATE["last"]["weight"])


@pytest.mark.parametrize("place", [0, 30, 200, 1500, -1])
def test_a_single_bit_that_is_another_one_is_found_wherever_it_is(tmp_path, place, caplog):
    ResumeFile(tmp_path / "state", "x").write(STATE)
    content = bytearray((tmp_path / "state").read_bytes())
    content[place] ^= 1
    (tmp_path / "state").write_bytes(content)
    assert ResumeFile(tmp_path / "state", "x").read() is None
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("length", [0, 40, 1000, -1])
def test_a_state_that_is_cut_short_is_found(tmp_path, length):
    ResumeFile(tmp_path / "state", "x").write(STATE)
    (tmp_path / "state").write_bytes((tmp_path / "state").read_bytes()[:length])
    assert ResumeFile(tmp_path / "state", "x").read() is None


class OwnFault(Exception):
    pass


def test_what_is_held_is_written_only_where_the_training_is_broken_off(tmp_path):
    with ResumeFile(tmp_path / "finished", "x", every_s=3600) as unfinished:
        unfinished.hold(STATE)
        assert unfinished.held_epochs == 3
    assert not (tmp_path / "finished").exists()
    with pytest.raises(OwnFault), ResumeFile(tmp_path / "broken", "x", every_s=3600) as unfinished:
        unfinished.hold(STATE)
        raise OwnFault
    assert ResumeFile(tmp_path / "broken", "x").read()["epoch"] == 3


def test_a_state_on_disk_is_not_written_a_second_time(tmp_path, monkeypatch):
    with pytest.raises(OwnFault), ResumeFile(tmp_path / "state", "x") as unfinished:
        unfinished.hold(STATE)
        monkeypatch.setattr(unfinished, "write", lambda state: pytest.fail("written twice"))
        assert unfinished.held_epochs == 3
        raise OwnFault


def test_what_is_kept_aside_does_not_change_with_the_next_step():
    weight = torch.nn.Parameter(torch.ones(3))
    optimiser = torch.optim.AdamW([weight], lr=0.1)
    for _ in range(2):
        weight.sum().backward()
        optimiser.step()
        aside = kept_aside(optimiser.state_dict())
        before = aside["state"][0]["exp_avg_sq"].clone()
    weight.grad.mul_(5)
    optimiser.step()
    assert torch.equal(aside["state"][0]["exp_avg_sq"], before)
    assert not torch.equal(optimiser.state_dict()["state"][0]["exp_avg_sq"], before)


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a disk of 8 kB."""
    with small_disk(tmp_path / "disk", "8k") as folder:
        yield folder


def test_a_full_disk_is_told_by_the_name_of_the_file_and_leaves_the_earlier_state(full_disk, caplog):
    larger = {"epoch": 4, "last": {"weight": torch.zeros(10_000)}}
    with (
        pytest.raises(OSError, match="No space left on device") as said,
        ResumeFile(full_disk / "state", "x") as unfinished,
    ):
        unfinished.hold(STATE)
        unfinished.hold(larger)
    assert said.value.filename == str(full_disk / "state")
    assert "training goes on from an earlier epoch" in caplog.text
    assert ResumeFile(full_disk / "state", "x").read()["epoch"] == 3
    assert [path.name for path in full_disk.iterdir()] == ["state"]
