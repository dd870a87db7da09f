"""Models named on the command line: a class with its configuration, or a function that gives model and inputs.

transformers:ViTModel --config hidden_size=64 --inputs "pixel_values=float32[2,3,32,32]"
torch.nn:Linear --config in_features=4 --config out_features=2 --inputs 3x4
models/tagger.py:make            def make(): return model, inputs
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairlead._core import FairleadError, InvalidInput
from fairlead.base.memory import raise_if_memory_lacks
from fairlead.base.plain_text import text_of

SHAPE = re.compile(r"^(?:(?P<name>[A-Za-z_]\w*)=)?(?P<dtype>[a-z]+\d*)?(?:\[(?P<list>[\d\s,]*)\]|(?P<x>\d+(?:x\d+)*))$")
TOP_INTEGER = 8  # integers are drawn below it: ids that are valid in any vocabulary


def load(source: str, config: dict[str, Any], inputs: list[str]) -> tuple[Any, Any]:
    """(model in eval mode, inputs) of a source."""
    where, colon, name = source.rpartition(":")
    if not colon or not where or not name:
        raise InvalidInput(
            f"[export] Expected MODULE:CLASS or SCRIPT.py:FUNCTION, got '{source}'. "
            "For example torch.nn:Linear or model.py:make."
        )
    module = script(where) if where.endswith(".py") else package(where)
    maker = getattr(module, name, None)
    if maker is None or not callable(maker):
        some = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")][:6]
        raise InvalidInput(
            f"[export] Expected a class or function {name} in {where}, got none. It has: {', '.join(some)}."
        )
    import torch

    torch.manual_seed(0)  # random weights are the same in every run
    if isinstance(maker, type):
        if not issubclass(maker, torch.nn.Module):
            raise InvalidInput(f"[export] Expected a torch.nn.Module class, got {source}.")
        example = tensors(inputs)
        model = made(maker, config)
        with quoting(f"eval() of {type(model).__name__}"):
            model.eval()
        return model, example
    with quoting(source):
        result = maker(**config)
    if inspect.iscoroutine(result):
        result.close()  # nobody waits for it
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], torch.nn.Module):
        raise InvalidInput(
            f"[export] Expected {source} to return (model, inputs), got {type(result).__name__}. "
            "Return a module and a tuple or dict."
        )
    model, example = result
    with quoting(f"eval() of {type(model).__name__}"):
        model.eval()
    return model, tensors(inputs) if inputs else example


def made(cls: type, config: dict[str, Any]) -> Any:
    """Transformers classes are made from a configuration, others from their arguments."""
    try:
        made_from = getattr(cls, "config_class", None)
        return cls(made_from(**config)) if made_from is not None else cls(**config)
    except FairleadError:
        raise
    except Exception as error:
        raise_if_memory_lacks(error)
        raise InvalidInput(
            f"[export] Expected --config that {cls.__name__} accepts, but it raised: {first_line(error)}."
        ) from error


def script(path: str) -> Any:
    if not os.path.isfile(path):
        raise InvalidInput(f"[export] Expected a Python file, got '{path}', which does not exist.")
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"[export] Expected a Python file, got '{path}', whose name does not end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look there
    # What lies beside it can be imported, as with `python path`.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with quoting(path):
        spec.loader.exec_module(module)
    return module


@contextmanager
def quoting(what: str, but: type[Exception] = FairleadError) -> Iterator[None]:
    """What the user's own code raises is one line with the place, as everything else that goes wrong; `but` passes."""
    try:
        yield
    except (FairleadError, but):
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        if isinstance(error, SyntaxError):
            at = f" at {error.filename}:{error.lineno}"
        raise InvalidInput(
            f"[export] Expected {what} to run, but it raised {type(error).__name__}: {first_line(error)}{at}."
        ) from (None if isinstance(error, StopIteration) else error)  # contextlib takes its cause for the same error


def first_line(error: BaseException) -> str:
    return next(iter(text_of(error).splitlines()), "").rstrip(".")


def package(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidInput(f"[export] Expected the name of a module, got '{name}'. For example torch.nn:Linear.")
    # Last: a torch.py in the working folder is not PyTorch.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        with quoting(name, ModuleNotFoundError):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise InvalidInput(
            f"[export] Expected an importable module, got '{name}' ({error}). Install it with pip install "
            f"{missing.partition('.')[0]}, or give the path of a script ending in .py."
        ) from error


def pairs(option: str, given: tuple[str, ...]) -> dict[str, Any]:
    """("hidden_size=64", "act=gelu") -> {"hidden_size": 64, "act": "gelu"}"""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"[export] Expected {option} KEY=VALUE, got '{text}'.")
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[key] = {"true": True, "false": False, "none": None}.get(value.lower(), value)
    return found


def tensors(shapes: list[str]) -> Any:
    """["x=float32[2,3]"] -> {"x": random tensor}; without names a tuple."""
    if not shapes:
        raise InvalidInput('[export] Expected --inputs for a class, got none. For example --inputs "x=float32[2,16]".')
    made_of = [one_tensor(text) for text in shapes]
    names = [name for name, _ in made_of]
    if all(names):
        return dict(made_of)
    if any(names):
        raise InvalidInput("[export] Expected --inputs that are all named or all without a name, got both.")
    return tuple(tensor for _, tensor in made_of)


def one_tensor(text: str) -> tuple[str, Any]:
    import torch

    match = SHAPE.match(text.strip())
    dtype = getattr(torch, (match and match["dtype"]) or "float32", None)
    if match is None or not isinstance(dtype, torch.dtype):
        raise InvalidInput(
            f"[export] Expected --inputs as NAME=DTYPE[SIZES], such as input_ids=int64[2,7] or 2x16, got '{text}'."
        )
    sizes = [int(s[:20]) for s in re.findall(r"\d+", match["list"] if match["list"] is not None else match["x"])]
    try:
        if dtype is torch.bool:
            tensor = torch.ones(sizes, dtype=dtype)
        elif dtype.is_floating_point or dtype.is_complex:
            tensor = torch.randn(sizes).to(dtype)
        else:
            # A mask of zeros would hide everything: what is called one is of ones.
            mask = "mask" in (match["name"] or "")
            tensor = torch.ones(sizes, dtype=dtype) if mask else torch.randint(0, TOP_INTEGER, sizes).to(dtype)
    except Exception as error:
        raise_if_memory_lacks(error)
        raise InvalidInput(
            f"[export] Expected --inputs that PyTorch can make, got '{text}' ({first_line(error)})."
        ) from error
    return match["name"] or "", tensor


def named_dims(model: Any, inputs: Any, dims: tuple[str, ...]) -> Any:
    """("input_ids.0=batch", "x.1=16") -> dynamic_shapes: these as said (a number: fixed), the others found "
    "by trying."""
    if not dims:
        return None
    from torch.export import Dim

    from fairlead.tree.calls import normalise
    from fairlead.tree.leaves import get_leaf_tensors

    call = normalise(model, inputs)[0]
    wanted: dict[str, dict[int, Any]] = {}
    for text, value in pairs("--dim", dims).items():
        leaf, _, axis = text.rpartition(".")
        if leaf not in call.names or axis not in map(str, range(call.tensor(leaf).dim())):
            raise InvalidInput(
                f"[export] Expected --dim INPUT.AXIS=NAME with one of the inputs {', '.join(call.names[:6])}, "
                f"got '{text}'."
            )
        wanted.setdefault(leaf, {})[int(axis)] = value
    shapes = {}
    for name, value in call.named.items():
        leaves = get_leaf_tensors({name: value})
        flat = [
            {axis: wanted.get(leaf, {}).get(axis, Dim.AUTO) for axis in range(tensor.dim())}
            for leaf, tensor in leaves.items()
        ]
        shapes[name] = flat[0] if len(flat) == 1 else flat
    return shapes
