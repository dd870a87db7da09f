"""A cache of keys and values in int8: a scale for each channel, from runs of the file that keeps them as floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from fairlead.base.memory import raise_if_memory_lacks
from fairlead.contract import Contract
from fairlead.quantize import RoundedCache
from fairlead.tree.calls import Call, resized, with_other_tensors
from fairlead.verify.ort_values import to_tensor

LENGTHS = (512, 256, 128, 64, 32, 16)  # tokens that are looked at, of one row: the first that the model takes
# For larger values than those: what is beyond it is cut off, which costs more than coarser steps do.
ROOM = 1.5
TOKENS = "input_ids"

Scales = dict[str, torch.Tensor]  # by the name of an input or output: [heads, 1, size]


def scales_of(job: Any, contract: Contract) -> Scales:
    """From the examples, and a longer call made of the first."""
    pairs = job.cache_pairs
    largest: Scales = {}
    session = job.open_once(job.staged.path)

    def look(call: Call) -> None:
        values = session.run(dict(zip(job.input_names, call.tensors, strict=True)))
        found = dict(zip(session.outputs, values, strict=True))
        for past, present in pairs:
            made = to_tensor(found[present]).float().abs().amax((0, 2)).unsqueeze(1)
            largest[past] = torch.maximum(largest.get(past, made), made)

    for call in job.checked_calls():
        look(call)
    for length in LENGTHS:
        try:
            look(longer(job, contract, {past for past, _ in pairs}, length))
            break
        except Exception as error:  # the model's positions end before
            raise_if_memory_lacks(error)
    scales = {}
    for past, present in pairs:
        # A channel that was always zero may have anything.
        top = largest[past].amax().clamp(min=1e-30)
        scale = ROOM / 127 * torch.where(largest[past] > 0, largest[past], top)
        scales[past] = scales[present] = scale
    return scales


def longer(job: Any, contract: Contract, past: set[str], length: int) -> Call:
    """One row of `length` new tokens, after the same past; any of the vocabulary, where that is known."""
    call = job.calls[0]
    sizes = job.sizes_of(call)
    most = {symbol.name: symbol.max for symbol in contract.symbols}
    for name, (leaf, axis) in job.places.items():
        if job.call.names[leaf] not in past:
            sizes[name] = 1 if axis == 0 else min(max(length, sizes[name]), most[name])
    taken = job.within(sizes)
    shapes = job.probed.sizes_at([taken[symbol.name] for symbol in job.probed.symbols])
    tensors = [resized(t, list(s)) for t, s in zip(call.tensors, shapes, strict=True)]
    many = vocabulary(job.model)
    if many and TOKENS in job.input_names:
        place = job.input_names.index(TOKENS)
        drawn = torch.randint(0, many, tensors[place].shape, generator=torch.Generator().manual_seed(0))
        tensors[place] = drawn.to(tensors[place].dtype)
    return with_other_tensors(call, tensors)


def vocabulary(model: Any) -> int:
    """How many tokens a model of Transformers knows, itself or inside of another; 0: not known."""
    for module in model.modules():
        found = getattr(module, "get_input_embeddings", None)
        table = found() if callable(found) else None
        if isinstance(table, torch.nn.Embedding):
            return table.num_embeddings
    return 0


def rounded(tensor: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (tensor.float() / scale).round().clamp(-128, 127).to(torch.int8)


def note_rounded(model: Any, contract: Contract, scales: Scales) -> None:
    """Of a model in memory that keeps its cache so from now on."""
    past = {name for name, _ in model.cache_pairs}
    model.int8_cache({name: scales[name].flatten().tolist() for name in past})
    contract.inputs = [replace(row, dtype="int8") if row.name in scales else row for row in contract.inputs]
    contract.outputs = [replace(row, dtype="int8") if row.name in scales else row for row in contract.outputs]
    cache = RoundedCache(len(past), max(scales[name].numel() for name in past), {})
    if contract.quantized is None:
        contract.quantized = cache
    else:
        contract.notes += cache.words()
