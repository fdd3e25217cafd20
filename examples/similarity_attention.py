"""Train with similarity mining, then ask what makes an anchor look like its positive and not like its negative."""

import torch
from torch import nn
from torchvision.models import resnet18

from lookalike import SimilarityAttention, SimilarityMiningLoss
from lookalike.losses.triplet import TripletLoss
from lookalike.methods.sam.head import LinearHead

torch.manual_seed(0)
trunk = nn.Sequential(*list(resnet18().children())[:-2])  # any module from images to maps (N, C, h, w) after a ReLU
model = SimilarityAttention(trunk, LinearHead(nn.Linear(512, 64)))
loss = SimilarityMiningLoss(TripletLoss(), kind="triplet", gamma=0.2, warm_up_epochs=0)
optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
images, labels = torch.randn(12, 3, 64, 64), torch.arange(3).repeat_interleave(4)  # a batch of 3 classes

for step in range(3):
    value = loss(model, images, labels)
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    print(f"step {step}: loss {value.item():.3f}")
print(f"mining loss, mean of the steps: {loss.measures()['mining_loss']:.3f}")

model.eval()  # a batch norm in training mode would mix the images
triplet = images[[0, 1, 4]].unsqueeze(1)  # (3, 1, 3, 64, 64): anchor, positive, negative of one triplet
maps = model.maps(triplet, "triplet")  # (3, 1, h, w), where each of them holds what the triplet asks for
explanation = model.explain(triplet)["triplet"]  # maps (3, 1, 64, 64) in [0, 1], weight (1, 64), features (3, 1, 64)
for role, heat in zip(("anchor", "positive", "negative"), explanation.maps[:, 0], strict=True):
    print(f"{role}: the warmest place is row {int(heat.argmax()) // 64}, column {int(heat.argmax()) % 64}")
