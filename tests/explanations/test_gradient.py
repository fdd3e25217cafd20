"""Maps of any network by the name of a layer are those of the same network in two parts."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet18

import lookalike
from lookalike.models.backbones import Tiny
from trainings import CROP, learner


class Plain(nn.Module):
    """An embedder as people write one."""

    def __init__(self, embedder):
        super().__init__()
        self.trunk, self.head = embedder.trunk, embedder.head

    def forward(self, images):
        return self.head(self.trunk(images)[-1].mean(dim=(2, 3)))


def images(count=3, crop=CROP):
    return torch.randn(3, count, 3, crop, crop, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", ["attention", "gradient", "class_agnostic"])
@pytest.mark.parametrize("roles", [2, 3])
def test_a_network_is_explained_by_the_name_of_a_layer_as_an_embedder_is(method, roles):
    embedder = learner("embedder").model.eval()
    given = list(images())[:roles]
    expected = lookalike.explain(embedder, *given, method=method)
    found = lookalike.explain(Plain(embedder).eval(), *given, method=method, layer="trunk")  # whose maps are a list
    torch.testing.assert_close(found.value, expected.value)
    for one, other in zip(found.maps, expected.maps, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_the_gradient_is_that_of_the_cosine():
    network = Tiny().eval()
    model = nn.Sequential(network.stage1, network.stage2, network.stage3, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    query, gallery, _ = images(count=1)
    found = lookalike.explain(model, query, gallery, method="gradient", layer="2")
    maps = [model[:3](each).detach().requires_grad_() for each in (query, gallery)]
    score = F.cosine_similarity(*(each.mean(dim=(2, 3)) for each in maps))
    for each, gradient, seen in zip(maps, torch.autograd.grad(score.sum(), maps), found.maps, strict=True):
        weights = gradient.mean(dim=(2, 3), keepdim=True)
        torch.testing.assert_close(seen, (weights * each).sum(dim=1).relu().detach(), atol=1e-6, rtol=1e-4)


def test_the_model_is_left_as_it_was_and_its_weights_have_no_gradient():
    model = resnet18(num_classes=16).eval()
    before = model(images(2, 64)[0])
    lookalike.explain(model, *images(2, 64), layer="layer4")
    assert torch.equal(model(images(2, 64)[0]), before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(part._forward_hooks for part in model.modules())


def test_layers_and_methods_that_do_not_fit_are_named():
    model = resnet18(num_classes=16).eval()
    with pytest.raises(ValueError, match=r"'fc' gives shape .*, not maps"):
        lookalike.explain(model, *images(2, 64), layer="fc")
    with pytest.raises(ValueError, match="layer: unknown 'layer5', did you mean 'layer"):
        lookalike.explain(model, *images(2, 64), layer="layer5")
    with pytest.raises(ValueError, match="method: unknown 'structure'"):
        lookalike.explain(model, *images(2, 64), layer="layer4", method="structure")
