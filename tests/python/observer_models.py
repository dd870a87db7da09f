"""Models and observations that the observer's tests share."""

import contextlib

import torch

from fairlead import InputObserver
from fairlead.tree import make_dynamic_cache, register_flattening_functions

DYN = torch.export.Dim.DYNAMIC


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Llm(torch.nn.Module):
    """Minimal stand-in for a causal language model."""

    def forward(self, input_ids, attention_mask=None, past_key_values=None):
        return input_ids, past_key_values


class Multimodal(torch.nn.Module):
    def forward(self, input_ids, pixel_values=None, attention_mask=None, past_key_values=None):
        return input_ids, past_key_values


class Positional(torch.nn.Module):
    def forward(self, x, y=None, scale=1):
        return x * scale if y is None else x * scale + y


def cache_of(length, batch=1, layers=2):
    return make_dynamic_cache(
        [(torch.rand(batch, 4, length, 32), torch.rand(batch, 4, length, 32)) for _ in range(layers)]
    )


def ids(batch, length):
    return torch.randint(0, 1000, (batch, length))


def mask(batch, length):
    return torch.ones(batch, length, dtype=torch.int64)


def run_add(model, observer):
    with observer(model):
        for batch, length in ((2, 6), (3, 7), (4, 8)):
            model(torch.randn(batch, length), torch.randn(1, length))


def observed_llm():
    model, observer = Llm(), InputObserver()
    with register_flattening_functions(patch_transformers=True), observer(model):
        model(input_ids=ids(1, 10), attention_mask=mask(1, 10), past_key_values=cache_of(10))
        model(input_ids=ids(1, 1), attention_mask=mask(1, 11), past_key_values=cache_of(11))
    return model, observer


def observed_multimodal():
    model = Multimodal()
    observer = InputObserver(value_if_missing={"pixel_values": torch.empty((0, 3, 224, 224))})
    with register_flattening_functions(patch_transformers=True), observer(model):
        model(input_ids=ids(1, 20), pixel_values=torch.rand(1, 3, 224, 224), attention_mask=mask(1, 20))
        model(input_ids=ids(1, 1), attention_mask=mask(1, 21), past_key_values=cache_of(20))
        model(input_ids=ids(1, 1), attention_mask=mask(1, 22), past_key_values=cache_of(21))
    return model, observer


def export_with(observer, model, arguments, shapes):
    """torch.export as a user would call it; sizes 0 and 1 need its switch for them."""
    args, kwargs = (arguments, {}) if isinstance(arguments, tuple) else ((), arguments)
    patch = contextlib.nullcontext()
    if any(candidate.needs_backed_size_oblivious(shapes) for candidate in observer.info.inputs):
        patch = torch.fx.experimental._config.patch(backed_size_oblivious=True)
    with register_flattening_functions(patch_transformers=True), patch:
        return torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=False)
