"""LoRA adapters: found in a model by structure, as inputs of a file or merged into its weights."""

from fairlead.adapters.export import export_adapter

__all__ = ["export_adapter"]
