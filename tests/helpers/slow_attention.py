"""Where attention lies, counted pixel by pixel."""

import math


def described_slowly(heat, objects):
    """Means over the pictures, pixel by pixel."""
    sums = dict.fromkeys(("coverage", "spread", "empty", "on_object", "object_area"), 0.0)
    for picture, mask in zip(heat.tolist(), objects.tolist(), strict=True):
        values = [value for row in picture for value in row]
        inside = [value for row in mask for value in row]
        mass = sum(values)
        sums["coverage"] += sum(value > 0.5 for value in values) / len(values)
        sums["object_area"] += sum(inside) / len(inside)
        sums["empty"] += mass == 0
        if mass > 0:
            entropy = -sum(value / mass * math.log(value / mass) for value in values if value > 0)
            sums["spread"] += math.exp(entropy) / len(values)
            sums["on_object"] += sum(value for value, own in zip(values, inside, strict=True) if own) / mass
    return {name: value / len(heat) for name, value in sums.items()}
