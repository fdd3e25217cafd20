"""Use these parts with pytorch-metric-learning: our losses and samplers, its miners, samplers and trainer."""

import torch
from pytorch_metric_learning import miners, samplers, trainers
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18

from lookalike import ContextualLoss
from lookalike.losses import LOSSES
from lookalike.sampling.samplers import BalancedSampler

torch.manual_seed(0)
embedder = resnet18(num_classes=64)  # any module from images to embeddings (N, D)
optimiser = torch.optim.Adam(embedder.parameters(), lr=1e-3)
images, labels = torch.randn(32, 3, 64, 64), torch.arange(8).repeat_interleave(4)
dataset = TensorDataset(images, labels)

# Our sampler and loss, its miner: the tuples that it mined take the place of the loss's own.
sampler = BalancedSampler(labels, batch_size=16, per_class=4)
miner, loss = miners.MultiSimilarityMiner(epsilon=0.1), LOSSES["multi_similarity"]()
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, batch_labels in DataLoader(dataset, batch_sampler=sampler):
        embeddings = embedder(batch)
        value = loss(embeddings, batch_labels, miner(embeddings, batch_labels))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        print(f"own loop: loss {value.item():.3f}")

# Its trainer and sampler, our loss. The contextual loss takes all pairs of a batch, so there is no miner.
trainer = trainers.MetricLossOnly(
    models={"trunk": embedder},
    optimizers={"trunk_optimizer": optimiser},
    batch_size=16,
    loss_funcs={"metric_loss": ContextualLoss(4, 0.05, 0.4, 0.1, 0.3, 0.75, 0.6)},
    dataset=dataset,
    sampler=samplers.MPerClassSampler(labels, m=4, length_before_new_iter=len(labels)),
    dataloader_num_workers=0,
    data_device=torch.device("cpu"),
    end_of_iteration_hook=lambda trainer: print(f"trainer: loss {trainer.losses['total_loss'].item():.3f}"),
)
trainer.train(num_epochs=3)
