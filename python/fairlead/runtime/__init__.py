"""Runs exported generative models with numpy and ONNX Runtime alone: no torch, no transformers.

from fairlead.runtime import Generator
generator = Generator.from_folder("out/")
tokens = generator.generate([[1, 15, 27]], max_new_tokens=32)
"""

from fairlead.runtime.generator import Generator

__all__ = ["Generator"]
