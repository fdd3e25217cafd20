from __future__ import annotations

import torch

from lookalike.miners import draw_columns


def test_columns_are_drawn_in_proportion_to_their_weights_over_any_range():
    weights = torch.tensor([0.0, 0.5, 0.3, 0.2])
    rows = (weights.log() + 5000).repeat(4000, 1)
    counts = torch.bincount(draw_columns(rows, torch.Generator().manual_seed(0)), minlength=4) / 4000
    assert counts[0] == 0
    torch.testing.assert_close(counts, weights, rtol=0, atol=0.03)
