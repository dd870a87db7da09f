"""The second way in: programs of torch.export, in memory or from .pt2 files."""
