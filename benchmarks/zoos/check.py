"""Exports one model and compares the file with eager at sizes of its own choice, near and far."""

from __future__ import annotations

import random
import re
import resource
import tempfile
import time

import numpy as np
import onnxruntime
import torch

import fairlead

NEAR, FAR = 10, 4  # calls at other sizes
LARGEST = 3_000_000  # elements of an input
PASSES = 40  # of eager that an export may take, where that is more than the limit
SECONDS = 25  # of checking, of the processor; what was not called by then is not


def checked(build):
    """Yields parts of the row: {"outcome", "error", "seconds", "eager", "batch", "space", "checked"}."""
    torch.manual_seed(0)
    random.seed(0)
    yield {"stage": "building"}
    try:
        model, *rest = build()
        args = tuple(rest[0]) if rest and isinstance(rest[0], (tuple, list)) else ()
        kwargs = rest[0] if rest and isinstance(rest[0], dict) else {}
        model = model.eval()
        with torch.no_grad():
            model(*args, **kwargs)
            start = time.process_time()
            model(*args, **kwargs)
            eager = time.process_time() - start
    except Exception as error:
        yield {"outcome": "does not build", "error": line_of(error)}
        return
    yield {"stage": "exporting", "eager": round(eager, 4)}
    limit, most = resource.getrlimit(resource.RLIMIT_CPU)
    if PASSES * eager + SECONDS > limit > 0:  # slow itself
        resource.setrlimit(resource.RLIMIT_CPU, (int(PASSES * eager + SECONDS), most))
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        try:
            result = fairlead.export(model, kwargs or args, f"{folder}/model.onnx")
        except fairlead.FairleadError as error:
            kind = "differs" if isinstance(error, fairlead.Discrepancy) else "refused"
            yield {"outcome": kind, "error": line_of(error), "seconds": time.process_time() - start}
            return
        except Exception as error:
            yield {"outcome": "broke", "error": line_of(error), "seconds": time.process_time() - start}
            return
        yield {"stage": "checking", "seconds": round(time.process_time() - start, 2), "nodes": result.nodes}
        yield check_file(model, args, kwargs, result, f"{folder}/model.onnx")


def line_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:1000]


def check_file(model, args, kwargs, result, path: str) -> dict:
    call = fairlead.tree.calls.normalise(model, kwargs or args)[0]
    shapes = [row["shape"] for row in result.contract.inputs]
    session = onnxruntime.InferenceSession(path, options(), providers=["CPUExecutionProvider"])
    found = {"fixed": fixed_words(result.contract), "outcome": "right", "checked": 0}
    found |= free_dims(model, call, shapes)
    calls, end = 0, time.process_time() + SECONDS
    for sizes in settings(call, shapes, result.contract.symbols):
        tensors = [made(t, s) for t, s in zip(call.tensors, sizes, strict=True)]
        says = compare(model, call, session, tensors, result)
        if says is None:
            continue
        if says:
            return found | {"outcome": says[0], "error": f"at {sizes}: {says[1]}"}
        calls += 1
        if time.process_time() > end:
            break
    if not calls:
        return found | {"outcome": "right at the example"}
    return found | {"checked": calls}


def options():
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = made.inter_op_num_threads = 1
    made.log_severity_level = 4
    return made


def fixed_words(contract) -> list[str]:
    return [f"axis {row['axis']} of {row['name']} = {row['size']}: {row['reason']}"[:300] for row in contract.fixed]


def settings(call, shapes, symbols):
    """Sizes of the inputs, first near the example and then far from it, within what the contract allows."""
    names = {row["name"]: row for row in symbols}
    base = {name: min(row["tried"]) for name, row in names.items()}
    seen = set()
    for k in range(NEAR + FAR):
        values = {}
        for name, row in names.items():
            most = min(row["max"], base[name] + 12 if k < NEAR else 3 * base[name] + 8)
            least = max(row["min"], 1 if k % 3 == 0 else base[name] // 2)
            values[name] = random.randint(min(least, most), most)
            if k % 2 and name == max(names):  # one that stays, so that eager has less to refuse
                values[name] = base[name]
        try:
            sizes = [[int(eval(text, {"max": max, "min": min}, dict(values))) for text in shape] for shape in shapes]
        except (NameError, SyntaxError):
            return
        key = str(sizes)
        if key in seen or any(np.prod(s) > LARGEST for s in sizes) or any(n < 1 for s in sizes for n in s):
            continue
        seen.add(key)
        yield sizes


def made(tensor: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Values of the example's kind, other ones."""
    if list(tensor.shape) == sizes:
        return tensor.clone()
    if tensor.dtype.is_floating_point and float(tensor.std() if tensor.numel() > 1 else 0) > 0:
        low, high = float(tensor.min()), float(tensor.max())
        if low >= 0:
            return (low + (high - low) * torch.rand(sizes)).to(tensor.dtype)
        return torch.randn(sizes, dtype=tensor.dtype)
    repeats = [-(-n // max(1, m)) for n, m in zip(sizes, tensor.shape, strict=True)]
    return tensor.repeat(repeats)[tuple(slice(0, n) for n in sizes)].clone()


def compare(model, call, session, tensors, result):
    """None where eager refuses, () where the file is right, else what is wrong."""
    args, kwargs = call.with_tensors([t.clone() for t in tensors])
    try:
        with torch.no_grad():
            expected = list(fairlead.tree.get_leaf_tensors(model(*args, **kwargs)).values())
    except Exception:
        return None
    names = {row["name"]: t.numpy() for row, t in zip(result.contract.inputs, tensors, strict=True)}
    given = {i.name: names[i.name] for i in session.get_inputs() if i.name in names}
    try:
        got = session.run(None, given)
    except Exception as error:
        text = str(error).splitlines()[0]
        own = re.search(r"Name:'([^']* [^']*)'", text)  # a requirement of the file has a sentence for its name
        return ("refuses a call", own[1]) if own else ("fails", text[-300:])
    for name, g, e in zip((o.name for o in session.get_outputs()), got, expected, strict=False):
        if e.is_complex() and g.dtype.kind != "c":  # a file has pairs
            e = torch.view_as_real(e)
        if tuple(g.shape) != tuple(e.shape):
            return "wrong", f"{name} is {list(g.shape)}, eager's is {list(e.shape)}"
        e = e.numpy()
        if not e.size or e.dtype.kind not in "fiubc":
            continue
        scale = max(1e-3, float(np.nanmax(np.abs(e.astype(np.complex128)))))
        worst = float(np.nanmax(np.abs(g.astype(np.complex128) - e.astype(np.complex128)))) / scale
        if worst > 2e-3:
            return "wrong", f"{name} differs by {worst:.2g} of its largest value"
    return ()


def free_dims(model, call, shapes) -> dict:
    """Whether batch and other dimensions are dynamic; where one is fixed, whether eager takes other sizes."""
    batch, space = "", ""
    first = shapes[0]
    if first:
        batch = "dynamic" if not first[0].isdigit() else "lost" if accepts(model, call, shapes, [0]) else "fixed"
    others = [(k, a) for k, s in enumerate(shapes) for a in range(1, len(s))]
    free = [p for p in others if not shapes[p[0]][p[1]].isdigit()]
    lost = sorted({a for k, a in others if (k, a) not in free and k == 0 and accepts(model, call, shapes, [a])})
    space = "lost " + str(lost) if lost else "dynamic" if free else "fixed"
    return {"batch": batch, "space": space}


def accepts(model, call, shapes, axes: list[int]) -> bool:
    """Whether eager runs where these axes of the first input, and those of equal size with them, are larger."""
    base = [list(t.shape) for t in call.tensors]
    size = base[0][axes[0]]
    alike = [(k, a) for k, s in enumerate(base) for a, n in enumerate(s) if n == size and shapes[k][a].isdigit()]
    groups = [[(0, axes[0])], alike, [p for p in alike if p[1] == axes[0]]]
    end = time.process_time() + SECONDS / 5
    for more in (32, size):  # one more may be cut off by a stride
        for group in groups:
            if time.process_time() > end:
                return False
            sizes = [[n + more if (k, a) in group else n for a, n in enumerate(s)] for k, s in enumerate(base)]
            if any(np.prod(s) > LARGEST for s in sizes):
                continue
            tensors = [made(t, s) for t, s in zip(call.tensors, sizes, strict=True)]
            args, kwargs = call.with_tensors(tensors)
            try:
                with torch.no_grad():
                    model(*args, **kwargs)
                return True
            except Exception:
                continue
    return False
