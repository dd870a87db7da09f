"""Rotary embeddings whose frequencies depend on the length of the call (dynamic NTK, LongRoPE)."""

from __future__ import annotations

import functools
from typing import Any

import torch

from fairlead.patches.table import methods, register_patch

ERROR = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1)"


def _updating(function: Any) -> Any:
    """The function that the decorator `dynamic_rope_update` made, below others (no_grad); None if it did not."""
    while function is not None:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_name == "wrapper" and code.co_filename.endswith("modeling_rope_utils.py"):
            return function
        function = getattr(function, "__wrapped__", None)
    return None


def _updating_forwards() -> list[str]:
    return methods(lambda cls, name, function: name == "forward" and _updating(function) is not None)


@register_patch(
    "dynamo",
    _updating_forwards,
    name="rotary_without_branches",
    problem=f"The frequencies are chosen with `if seq_len > max_seq_len_cached`, a value: {ERROR}. What was chosen is "
    "then left on the module.",
    remedy="Both sets are computed and torch.where chooses. Nothing is left on the module, so a call no longer depends "
    "on the lengths of the calls before it.",
    versions="all; LongRoPE has a branch up to 5.0, none in 5.22",
    looked_for="forward methods decorated with dynamic_rope_update",
)
def rotary_without_branches(original: Any) -> Any:
    rope_forward = _updating(original).__wrapped__

    @torch.no_grad()
    @functools.wraps(original)
    def forward(self: Any, x: Any, position_ids: Any, layer_type: Any = None) -> Any:
        named = {} if layer_type is None else {"layer_type": layer_type}
        kind = self.rope_type if layer_type is None else self.rope_type[layer_type]
        if "dynamic" in kind:
            frequencies = _dynamic(self, kind, position_ids, x.device, named)
        elif kind == "longrope":
            frequencies = _longrope(self, kind, position_ids, x.device, named)
        else:
            return original(self, x, position_ids, **named)
        name = f"{layer_type}_inv_freq" if named else "inv_freq"
        before = self._buffers[name]
        self._buffers[name] = frequencies
        try:
            return rope_forward(self, x, position_ids, **named)
        finally:
            self._buffers[name] = before

    return forward


def _dynamic(self: Any, kind: Any, position_ids: Any, device: Any, named: Any) -> Any:
    prefix = f"{named['layer_type']}_" if named else ""
    length = torch.max(position_ids) + 1
    cached = getattr(self, f"{prefix}max_seq_len_cached", self.max_seq_len_cached)
    grown = _grown(self, kind, length, device, named)
    frequencies = torch.where(length > cached, grown, getattr(self, f"{prefix}inv_freq").to(device))
    if isinstance(cached, int) and cached <= self.original_max_seq_len:
        return frequencies  # nothing has grown yet, so there is nothing to go back from
    back = torch.logical_and(length < self.original_max_seq_len, torch.as_tensor(cached > self.original_max_seq_len))
    return torch.where(back, getattr(self, f"{prefix}original_inv_freq").to(device), frequencies)


def _grown(self: Any, kind: Any, length: Any, device: Any, named: Any) -> Any:
    compute = _compute(self, kind)
    if "maximum" in compute.__code__.co_names:
        return compute(self.config, device, seq_len=length, **named)[0]
    # Up to 4.53 the function itself branches on the length: the same steps for a tensor.
    config = self.config
    size = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    size = int(size * getattr(config, "partial_rotary_factor", 1.0))
    most, factor = config.max_position_embeddings, config.rope_scaling["factor"]
    length = torch.maximum(length, torch.tensor(most, dtype=length.dtype, device=length.device))
    base = config.rope_theta * ((factor * length / most) - (factor - 1)) ** (size / (size - 2))
    return 1.0 / (base ** (torch.arange(0, size, 2, dtype=torch.int64).to(device=device, dtype=torch.float) / size))


def _longrope(self: Any, kind: Any, position_ids: Any, device: Any, named: Any) -> Any:
    prefix = f"{named['layer_type']}_" if named else ""
    parameters = getattr(self.config, "rope_parameters", None)
    if parameters is not None:
        limit = (parameters[named["layer_type"]] if named else parameters)["original_max_position_embeddings"]
    else:
        limit = getattr(self.config, "original_max_position_embeddings", self.config.max_position_embeddings)
    long, _ = _compute(self, kind)(self.config, device, seq_len=limit + 1, **named)
    short = getattr(self, f"{prefix}original_inv_freq").to(device)
    return torch.where(torch.max(position_ids) + 1 > limit, long, short)


def _compute(self: Any, kind: Any) -> Any:
    """How frequencies are computed: an attribute of the module up to 4.57, a table since."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    return getattr(self, "rope_init_fn", None) or ROPE_INIT_FUNCTIONS[kind]
