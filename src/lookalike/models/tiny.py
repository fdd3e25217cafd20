"""A network small enough to train on a processor core in seconds."""

from __future__ import annotations

from torch import Tensor, nn


class Tiny(nn.Module):
    """Three stages on 56 px images, with maps as wide as those of ResNet-50 at 224 px: 28, 14 and 7.

    About 0.1 million parameters (125,392). ``stage1``, ``stage2`` and ``stage3`` stand where ``layer2``, ``layer3`` and
    ``layer4`` do in torchvision's ResNets: each ends with a ReLU.
    """

    def __init__(self, widths: tuple[int, int, int] = (16, 32, 96)) -> None:
        super().__init__()
        first, second, third = widths
        self.stage1 = nn.Sequential(*_unit(3, first, stride=2))  # (N, 16, 28, 28)
        self.stage2 = nn.Sequential(*_unit(first, second, stride=2), *_unit(second, second))  # (N, 32, 14, 14)
        self.stage3 = nn.Sequential(*_unit(second, third, stride=2), *_unit(third, third))  # (N, 96, 7, 7)

    def forward(self, images: Tensor) -> Tensor:
        """Map of the last stage ``(N, 96, H/8, W/8)`` of images ``(N, 3, H, W)``."""
        result: Tensor = self.stage3(self.stage2(self.stage1(images)))
        return result


def _unit(inputs: int, outputs: int, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
