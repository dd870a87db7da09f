"""Tiny models from the recipes in tests/python/data/recipes: a class, its config and an example call, as JSON."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FOLDER = Path(__file__).parent / "data" / "recipes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def make(name: str) -> tuple[torch.nn.Module, dict]:
    import transformers

    recipe = json.loads((FOLDER / f"{name}.json").read_text())
    config_class = find(transformers, recipe["config_class"])
    torch.manual_seed(0)
    model = find(transformers, recipe["class"])(config_class.from_dict(recipe["config"])).eval()
    generator = torch.Generator().manual_seed(0)
    if "decode" in recipe:
        return model, with_cache(model, *recipe["decode"], generator)
    return model, {key: value_of(part, generator) for key, part in recipe["inputs"].items()}


def find(transformers, name: str):
    """A class of the library; those without a public name are where the class of the model lives."""
    found = getattr(transformers, name, None)
    if found is not None:
        return found
    for module in list(vars(transformers.models).values()):
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(f"this release of Transformers has no {name}")


def value_of(part, generator: torch.Generator):
    if not isinstance(part, dict):
        return part
    if "dict" in part:
        return {key: value_of(inner, generator) for key, inner in part["dict"].items()}
    if "list" in part:
        return [value_of(inner, generator) for inner in part["list"]]
    return tensor_of(part["tensor"], generator)


def tensor_of(facts: dict, generator: torch.Generator) -> torch.Tensor:
    shape, dtype = facts["shape"], getattr(torch, facts["dtype"])
    if "values" in facts:
        return torch.tensor(facts["values"], dtype=dtype).reshape(shape)
    if "fill" in facts:
        return torch.full(shape, facts["fill"], dtype=dtype)
    if "low" in facts:
        return torch.randint(facts["low"], facts["high"] + 1, shape, generator=generator, dtype=dtype)
    if "uniform" in facts:
        return torch.rand(shape, generator=generator).to(dtype)
    mean, deviation = facts["normal"]
    return (torch.randn(shape, generator=generator) * deviation + mean).to(dtype)


def with_cache(model, batch: int, past: int, new: int, generator: torch.Generator) -> dict:
    """The call that decodes `new` tokens after `past` ones."""
    vocabulary = model.config.get_text_config().vocab_size
    ids = torch.randint(3, vocabulary, (batch, past + new), generator=generator)
    with torch.no_grad():
        cache = model(input_ids=ids[:, :past], use_cache=True).past_key_values
    mask = torch.ones(batch, past + new, dtype=torch.int64)
    return {"input_ids": ids[:, past:], "attention_mask": mask, "past_key_values": cache}


class _Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operators = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators[str(func)] += 1
        return func(*args, **(kwargs or {}))


def executed(model, inputs: dict) -> set[str]:
    """The operators of one forward pass, as PyTorch's dispatcher names them."""
    with torch.no_grad(), _Seen() as seen:
        model(**inputs)
    return set(seen.operators)
