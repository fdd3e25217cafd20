"""Wrap any trained embedder with DIML, rank a gallery and ask which places of two images were matched.

Nothing has to be trained for it. To train with DIML's own losses, give them ``model.regions(images)`` and choose
``global_vector="locations"``.
"""

import torch
from torchvision.models import resnet18

from lookalike import DIML, DIMLLoss

torch.manual_seed(0)
embedder = resnet18(num_classes=64).eval()  # yours: any module whose last layers are a pooling and a linear map
model = DIML(embedder, feature_layer="layer4", side=4, truncation=5)
images, labels = torch.randn(16, 3, 128, 128), torch.arange(4).repeat_interleave(4)

with torch.no_grad():
    gallery = model.represent(images)
ranking = model.rank(gallery, gallery, self_match=True)  # (16, 16), the first five reordered, the query last
first = int(ranking[0, 0])
print(f"nearest to image 0: {ranking[0, :5].tolist()}")

explanation = model.explain(gallery[0], gallery[first])
contributions = explanation.contributions[0, 0]  # (16, 16), places of the query by places of the other
here, there = divmod(int(contributions.argmax()), 16)
print(f"structural similarity {explanation.structural_similarity.item():.4f}")
print(f"place {divmod(here, 4)} meets place {divmod(there, 4)}: {contributions.max().item():.4f} of it")
query_map, gallery_map = explanation.attention((128, 128))  # (1, 1, 128, 128) each: where they resemble each other

trained = DIML(embedder.train(), feature_layer="layer4", global_vector="locations")
loss = DIMLLoss("margin", classes=4)
optimiser = torch.optim.Adam([*trained.parameters(), *loss.parameters()], lr=1e-4)  # the loss holds the boundaries
value = loss(trained.regions(images), labels)
value.backward()
optimiser.step()
print(f"a step of training: loss {value.item():.3f}")
