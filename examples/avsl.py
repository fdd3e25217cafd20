"""Train AVSL on a classifier's stages, measure distances and ask which nodes set two images apart.

Nodes are the embedding dimensions of every level; their contributions add up to the distance of the pair.
"""

import torch
from torchvision.models import resnet18

from lookalike import AVSL, AVSLLoss

torch.manual_seed(0)
model = AVSL(resnet18(), levels=("layer2", "layer3", "layer4"), embedding_dim=64, k=16, image_size=64)
loss = AVSLLoss("proxy_anchor", classes=4, embedding_dim=64)
optimiser = torch.optim.Adam([*model.parameters(), *loss.parameters()], lr=1e-3)  # the loss holds the proxies
images, labels = torch.randn(16, 3, 64, 64), torch.arange(4).repeat_interleave(4)  # a batch of 4 classes

for step in range(4):
    value = loss(model(images), labels, model.distance)
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    print(f"step {step}: loss {value.item():.3f}")

model.eval()  # or the edges between the levels go on learning
with torch.no_grad():
    query, gallery = model(images[:1], with_maps=True), model(images[1:], with_maps=True)
    distance = model.distance(query, gallery)  # (1, 15), smaller is closer
nearest = int(distance.argmin())
print(f"image {nearest + 1} is nearest, distance {distance[0, nearest].item():.4f}")

explanation = model.explain(query, gallery[nearest])
for level, contributions in zip(model.levels, explanation.contributions, strict=True):  # (1, 1, 64) each
    share, node = contributions[0, 0].max(dim=0)
    print(f"{level}: its nodes add {contributions.sum().item():.4f}, node {node.item()} alone {share.item():.4f}")
query_map, gallery_map = explanation.attention((64, 64))  # (1, 1, 64, 64) each: where the difference lies
