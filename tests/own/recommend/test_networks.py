"""The networks at hand: those given, those that torchvision has kept, and the project's own."""

import pytest
import torch
from torchvision.models import alexnet, squeezenet1_1

from lookalike.own.models import open_model
from lookalike.own.recommend.networks import networks_at_hand


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    torch.manual_seed(0)
    torch.save(squeezenet1_1(weights=None).state_dict(), tmp_path / "squeeze.pth")
    return tmp_path / "squeeze.pth"


def test_the_projects_own_network_is_always_there_and_comes_last(weights):
    assert [each.name for each in networks_at_hand([], size_px=96)] == ["tiny"]
    first, last = networks_at_hand([f"squeezenet1_1={weights}"], size_px=96)
    assert (first.name, last.name) == ("squeezenet1_1", "tiny")
    assert first.view == {"resize_px": 110, "crop_px": 96}
    assert last.view == {"resize_px": 64, "crop_px": 56}


def test_each_is_searched_with_as_it_was_measured(weights):
    for network in networks_at_hand([f"squeezenet1_1={weights}"], size_px=96):
        assert dict(open_model(network.model, size_px=network.view["crop_px"]).view) == network.view


def test_what_torchvision_has_kept_is_at_hand(weights, monkeypatch):
    folder = weights.parent / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "resnet18-f37072fd.pth").write_bytes(b"")
    first, _ = networks_at_hand([], size_px=96)
    assert (first.name, first.model) == ("resnet18", "untrained:resnet18")
    assert len(networks_at_hand([f"squeezenet1_1={weights}"], size_px=96)) == 3


def test_two_files_of_one_network_are_told_apart_and_any_classifier_gets_its_last_map(weights):
    other = weights.with_name("other.pth")
    torch.save(alexnet(weights=None).state_dict(), weights.with_name("alex.pth"))
    other.write_bytes(weights.read_bytes())
    given = [f"squeezenet1_1={weights}", f"squeezenet1_1={other}", f"alexnet={weights.with_name('alex.pth')}"]
    found = networks_at_hand(given, size_px=96)
    assert [each.name for each in found] == ["squeezenet1_1", "squeezenet1_1 (other)", "alexnet", "tiny"]
    assert found[1].slug == "squeezenet1_1_other"
    (weights.parent / "more").mkdir()
    third = weights.parent / "more" / "other.pth"
    third.write_bytes(weights.read_bytes())
    names = [each.name for each in networks_at_hand([*given, f"squeezenet1_1={third}"], size_px=96)]
    assert names[3] == "squeezenet1_1 (other, 2)"
    assert found[2].backbone["stages"] == ["avgpool"]  # of 6 x 6 places


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("squeezenet1_1", "is NAME=FILE"),
        ("squeezenet={weights}", "unknown 'squeezenet', did you mean 'squeezenet1_[01]'"),
        ("squeezenet1_1=nowhere.pth", "there is no file nowhere.pth"),
        ("resnet18={weights}", "do not fit resnet18"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_in_a_line(weights, given, said):
    with pytest.raises(ValueError, match=said) as refused:
        networks_at_hand([given.format(weights=weights)], size_px=96)
    assert "\n" not in str(refused.value)
