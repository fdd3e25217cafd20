from __future__ import annotations

import numpy as np
import pytest

from figurines.figure import SUPERSAMPLING, Figure, Pose
from figurines.geometry import band, ellipse, rectangle, rounded, turned

RED, BLUE = (255, 0, 0), (0, 0, 255)


def bar() -> Figure:
    figure = Figure()
    figure.fill(rectangle(-1, -0.25, 1, 0.25), RED)
    figure.mark("front", (1.0, 0.0))
    return figure


def covered(figure: Figure, pose: Pose) -> tuple[int, int, int, int]:
    return figure.draw(60, 40, pose).mask.getbbox()


def test_the_longer_side_of_the_silhouette_is_the_extent_and_its_middle_the_centre():
    left, top, right, bottom = covered(bar(), Pose((30, 20), 40))
    assert (left + right - 1, top + bottom - 1) == (60 * SUPERSAMPLING, 40 * SUPERSAMPLING)
    assert right - left == pytest.approx(40 * SUPERSAMPLING, abs=1)
    assert bottom - top == pytest.approx(10 * SUPERSAMPLING, abs=1)


def test_a_frame_replaces_the_silhouette():
    figure = bar()
    figure.frame(-2, -2, 2, 2)
    left, _, right, _ = covered(figure, Pose((30, 20), 40))
    assert right - left == pytest.approx(20 * SUPERSAMPLING, abs=1)


def test_a_mirrored_figure_faces_left():
    right = bar().draw(60, 40, Pose((30, 20), 40)).landmarks["front"]
    left = bar().draw(60, 40, Pose((30, 20), 40, mirrored=True)).landmarks["front"]
    assert right == pytest.approx((50 * SUPERSAMPLING, 20 * SUPERSAMPLING))
    assert left == pytest.approx((10 * SUPERSAMPLING, 20 * SUPERSAMPLING))


def test_a_quarter_turn_puts_the_front_below():
    landmark = bar().draw(60, 40, Pose((30, 20), 20, rotation=90)).landmarks["front"]
    assert landmark == pytest.approx((30 * SUPERSAMPLING, 30 * SUPERSAMPLING))


def test_a_marking_colours_the_silhouette_but_does_not_enlarge_it():
    plain, painted = bar(), bar()
    painted.paint(rectangle(0, -1, 3, 1), BLUE)
    pose = Pose((30, 20), 40)
    assert covered(painted, pose) == covered(plain, pose)
    assert painted.draw(60, 40, pose).colour.getpixel((40 * SUPERSAMPLING, 20 * SUPERSAMPLING)) == BLUE


def test_a_line_that_is_a_part_enlarges_the_silhouette():
    figure = bar()
    figure.stroke([(0, 0), (0, 2)], 0.1, BLUE)
    _, top, _, bottom = covered(figure, Pose((30, 20), 30))
    assert bottom - top == pytest.approx(30 * SUPERSAMPLING, abs=2)


def test_turning_is_clockwise_on_the_screen():
    assert turned([(1.0, 0.0)], 90) == pytest.approx(np.array([(0.0, 1.0)]))
    assert turned([(2.0, 1.0)], 180, (1.0, 1.0)) == pytest.approx(np.array([(0.0, 1.0)]))


def test_rounding_stays_inside_and_never_cuts_further_than_the_radius():
    corners = rectangle(0, 0, 4, 2)
    outline = rounded(corners, 0.1)
    assert outline.min() >= 0
    assert (outline <= [4, 2]).all()
    nearest = np.linalg.norm(outline[:, None] - corners[None], axis=2).min(axis=1)
    assert nearest.max() < 0.14


def test_a_band_of_a_circle_ends_on_the_circle_and_lies_between_its_heights():
    circle = ellipse((0, 0), 1.0)
    part = band(circle, -0.2, 0.5)
    assert part[:, 1].min() == pytest.approx(-0.2)
    assert part[:, 1].max() == pytest.approx(0.5)
    assert np.linalg.norm(part, axis=1).max() <= 1 + 1e-9
    at_the_top = part[np.isclose(part[:, 1], -0.2)]
    assert np.abs(at_the_top[:, 0]) == pytest.approx(np.full(2, np.sqrt(1 - 0.04)), abs=0.01)


def test_a_band_beyond_the_outline_is_a_single_point():
    assert band(rectangle(0, 0, 1, 1), 2, 3).shape == (1, 2)
