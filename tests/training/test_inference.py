"""Representations of many pictures, in as many at once as the memory holds."""

import pytest
import torch

from lookalike.training.inference import represent_images


class Loaded:
    """Pictures that are there already."""

    def __init__(self, images):
        self.images = images

    def batches(self, order, *, seed):
        return ((self.images[rows], rows) for rows in order)


def represent(most, asked):
    """What a device does that holds no more than some pictures."""

    def function(model, pictures):
        asked.append(len(pictures))
        if len(pictures) > most:
            raise torch.OutOfMemoryError(f"no memory for {len(pictures)}")
        return {"own": model(pictures)}

    return function


@pytest.mark.parametrize(("most", "fits"), [(1, 1), (3, 2), (100, 8)])
def test_fewer_pictures_at_once_are_tried_until_they_fit(most, fits):
    images, asked, model = torch.arange(11.0)[:, None], [], torch.nn.Dropout(0.5)
    found = represent_images(represent(most, asked), model, Loaded(images), batch_size=8)
    assert torch.equal(found["own"], images)
    assert not model.training
    assert max(asked[-11 // fits :]) == fits


def test_a_device_without_memory_for_one_picture_says_so():
    with pytest.raises(torch.OutOfMemoryError, match="no memory for 1"):
        represent_images(represent(0, []), torch.nn.Identity(), Loaded(torch.ones(3, 1)), batch_size=8)
