"""Generative models taken apart and exported: text decoders, encoder-decoders, vision-language models.

A short generation is watched, the calls that tell every dimension apart are made from it, and each part goes through
fairlead.export. fairlead.runtime.Generator runs the files.
"""

from fairlead.generation.export import export_for_generation

__all__ = ["export_for_generation"]
