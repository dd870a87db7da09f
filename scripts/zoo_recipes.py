#!/usr/bin/env python3
"""Writes recipes of tiny models: a config that is small, and an example call, one file of JSON for each architecture.

    python scripts/zoo_recipes.py --sweep sweep.py --transformers CHECKOUT bloom:BloomModel tapas:TapasModel

The sizes are those that the library's own tests use for the class. tests/python/recipes.py builds the model and the
call from a recipe, with nothing but the installed library. A name that ends in `:decode` is the call with a cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sweep_program import load, use_checkout

FOLDER = Path(__file__).parent.parent / "tests" / "python" / "data" / "recipes"
WHOLE = 1024  # integers up to so many are kept as they are, since some are lengths, boxes or special tokens


def tensor(value) -> dict:
    """Integers by value, or by range where there are many; floats by mean and deviation."""
    import torch

    kind = {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if value.numel() and bool((value == value.flatten()[0]).all()):
        return kind | {"fill": value.flatten()[0].item()}
    if value.dtype == torch.bool or not value.is_floating_point():
        if value.numel() <= WHOLE:
            return kind | {"values": value.flatten().tolist()}
        return kind | {"low": int(value.min()), "high": int(value.max())}
    if value.numel() and bool(((value >= 0) & (value <= 1)).all()):
        return kind | {"uniform": [0, 1]}
    return kind | {"normal": [round(float(value.mean()), 2), round(float(value.std()), 2)]}


def described(value):
    import torch

    if isinstance(value, torch.Tensor):
        return {"tensor": tensor(value)}
    if isinstance(value, dict):
        return {"dict": {key: described(part) for key, part in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list": [described(part) for part in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an input of {type(value)} has no recipe")


def fewer_rows(inputs: dict, batch: int) -> dict:
    """Three rows are enough to tell a batch, and make a quick test."""
    import torch

    rows = {key for key, value in inputs.items() if isinstance(value, torch.Tensor) and value.dim()}
    return {key: v[:3] if key in rows and batch > 3 and v.shape[0] == batch else v for key, v in inputs.items()}


def recipe(sweep, checkout: str, words: str) -> tuple[str, dict]:
    folder, name, *mode = words.split(":")
    for model_class, test in sweep.testers(checkout, folder):
        if model_class.__name__ == name:
            model, inputs = sweep.build(test, model_class)
            config = model.config
            inputs = fewer_rows(inputs, sweep.common_batch(inputs))
            settings = json.loads(config.to_json_string())
            settings.pop("transformers_version", None)
            made = {"class": name, "config_class": type(config).__name__, "config": settings}
            if mode:
                return f"{folder}_decode", made | {"decode": [inputs["input_ids"].shape[0], 4, 2]}
            return folder, made | {"inputs": {key: described(value) for key, value in inputs.items()}}
    raise LookupError(f"{words}: no such class in the tests")


def text(made: dict) -> str:
    """One line for each key of the config and for each input, so that a change is seen in a line."""
    lines = ["{"]
    for key, value in made.items():
        comma = "," if key != list(made)[-1] else ""
        if isinstance(value, dict):
            inside = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inside}\n}}{comma}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}{comma}")
    return "\n".join([*lines, "}"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="+", help="folder:Class or folder:Class:decode")
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--transformers", required=True)
    options = parser.parse_args()
    use_checkout(options.transformers)

    sweep = load(options.sweep)
    FOLDER.mkdir(exist_ok=True)
    for words in options.classes:
        try:
            name, made = recipe(sweep, options.transformers, words)
        except Exception as error:
            print(f"{words}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        (FOLDER / f"{name}.json").write_text(text(made))


if __name__ == "__main__":
    main()
