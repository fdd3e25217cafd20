"""Train any embedder with the contextual loss.

The loss looks at the ``k`` nearest neighbours of every image, so a batch holds ``k`` images of each class.
"""

import torch
from torchvision.models import resnet18

from lookalike import ContextualLoss
from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings

torch.manual_seed(0)
embedder = resnet18(num_classes=64)  # any module from images to embeddings (N, D)
loss = ContextualLoss(
    k=4, eps=0.05, lam=0.4, gamma=0.1, target_similarity=0.3, positive_margin=0.75, negative_margin=0.6
)
optimiser = torch.optim.Adam(embedder.parameters(), lr=1e-3)
images, labels = torch.randn(16, 3, 64, 64), torch.arange(4).repeat_interleave(4)  # a batch of 4 classes

for step in range(8):
    value = loss(embedder(images), labels)
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    print(f"step {step}: loss {value.item():.3f}")

with torch.no_grad():
    embeddings = embedder.eval()(images)
metrics = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1,), self_match=True)
print(f"R@1 on the batch it has seen: {metrics['R@1']:.2f}")
