"""One-shot segmentation of PASCAL-5i from attention maps: episodes, maps, cuts and their scores.

Source: Visual Similarity Attention (IJCAI 2022), section 4, Tables 4 and 5.
"""

from lookalike.segmentation.counts import binary_iou, iou_counts, mean_iou

__all__ = ["binary_iou", "iou_counts", "mean_iou"]
