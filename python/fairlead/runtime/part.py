"""One exported part: an ONNX Runtime session that takes and gives values by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead._core import InvalidInput, check_functions
from fairlead.base.element_types import ORT_TYPES
from fairlead.base.memory import lacks_memory
from fairlead.runtime.values import ort_value, runtime


class Part:
    """`run` takes a pool of values by name (numpy arrays or OrtValues) and gives the part's outputs by name."""

    def __init__(
        self, path: str, options: Any = None, providers: list[Any] | None = None, takes: dict[str, str] | None = None
    ):
        ort = runtime()
        if not os.path.isfile(path):
            raise InvalidInput(f"[Generator] Expected the file {path}, but there is none. Export the model again.")
        if options is None:
            options = ort.SessionOptions()
            options.log_severity_level = 4  # what fails is raised, and said once
        self.path = path
        check_functions(path)
        try:
            providers = providers or ["CPUExecutionProvider"]
            self.session = ort.InferenceSession(path, options, providers=providers, enable_fallback=len(providers) > 1)
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidInput(f"[Generator] Expected ONNX Runtime to load {path}, but it says: {text}") from None
        takes = takes or {}
        self.names = {takes.get(i.name, i.name): i.name for i in self.session.get_inputs()}  # in the pool: in the file
        self.inputs = {takes.get(i.name, i.name): ORT_TYPES.get(i.type, i.type) for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, pool: dict[str, Any], shared: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`shared`: outputs that are written to the memory of an input, by its name in the pool."""
        missing = [name for name in self.inputs if name not in pool]
        if missing:
            raise InvalidInput(
                f"[generate] Expected {', '.join(missing)} for {os.path.basename(self.path)}, got none. "
                "Pass everything that model.generate takes, by the same names."
            )
        feeds = {}
        for name, dtype in self.inputs.items():
            value = pool[name]
            feeds[self.names[name]] = ort_value(value, dtype) if isinstance(value, np.ndarray) else value
        try:
            into = {out: feeds[self.names[name]] for out, name in (shared or {}).items() if out in self.outputs}
            if into:
                return self.run_bound(feeds, into)
            results = self.session.run_with_ort_values(self.outputs, feeds)
        except Exception as error:
            shapes = ", ".join(f"{name} {list(v.shape())}" for name, v in list(feeds.items())[:6])
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            if lacks_memory(error):
                raise InvalidInput(
                    f"[generate] Expected memory for {os.path.basename(self.path)} with {shapes}, but there is not "
                    "enough. Shorten the prompt, or the batch."
                ) from None
            raise InvalidInput(
                f"[generate] Expected ONNX Runtime to run {os.path.basename(self.path)} with {shapes}, "
                f"but it says: {text}"
            ) from None
        return dict(zip(self.outputs, results, strict=True))

    def run_bound(self, feeds: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
        binding = self.session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            if name in into:
                binding.bind_ortvalue_output(name, into[name])
            else:
                binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        return dict(zip(self.outputs, binding.get_outputs(), strict=True)) | into
