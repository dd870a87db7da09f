"""Caches of Transformers: told apart by features, taken apart without loss, built from tensors."""
