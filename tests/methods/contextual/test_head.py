from __future__ import annotations

import torch
import torch.nn.functional as F

from lookalike.methods.contextual.head import Projector


def test_a_generator_fixes_the_weights_and_leaves_torch_alone():
    state = torch.get_rng_state()
    projectors = [Projector(4, 9, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(projectors[0].linear.weight, projectors[1].linear.weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_projector_works_while_training_and_is_dropped_at_test():
    embeddings = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    projector = Projector(4, 9)
    assert projector.linear.bias is None
    projected = projector(embeddings)
    linear = F.normalize(embeddings, dim=1) @ projector.linear.weight.T
    torch.testing.assert_close(projected, linear / linear.norm(dim=1, keepdim=True))
    torch.testing.assert_close(projector.eval()(embeddings), F.normalize(embeddings, dim=1))


def test_the_projector_leaves_autocast():
    projector = Projector(4, 9)
    embeddings = F.normalize(torch.randn(3, 4, generator=torch.Generator().manual_seed(2)), dim=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        projected = projector(embeddings)
    assert projected.dtype == torch.float32
    assert torch.equal(projected, projector(embeddings))
