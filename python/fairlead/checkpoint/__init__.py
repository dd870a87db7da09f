"""Checkpoints of Transformers: found, loaded, run on real inputs, exported to a folder that its clients can use."""
