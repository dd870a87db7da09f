"""One row of the export benchmark in a process of its own: exports once, measures, prints one JSON object.

python benchmarks/export_row.py fairlead '{"layers": 2}' out.onnx
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings

EXAMPLE = (2, 3, 7)  # rows, new tokens, cached tokens
UNSEEN = [(1, 1, 1), (4, 6, 9), (1, 1, 33), (5, 2, 19)]


def memory(name: str) -> int:
    """VmRSS, or VmHWM: its highest value since the last reset, in bytes."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def export(how: str, shape: dict, path: str) -> tuple[dict, object]:
    import torch
    from exporters import EXPORTERS
    from llama import Shape, eager, make_inputs, make_model

    torch.set_num_threads(1)
    run = EXPORTERS[how][1]()
    model = make_model(Shape(**shape))
    eager(model, make_inputs(model, *EXAMPLE))  # the first call of a kernel sets up threads and caches
    inputs = make_inputs(model, *EXAMPLE)
    reset_peak()
    before = memory("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    more = run(model, inputs, path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    weights = sum(p.numel() * p.element_size() for p in set(model.parameters()))
    row = {"seconds": seconds, "cpu": cpu, "memory": memory("VmHWM") - before, "weights": weights, **more}
    return row, model


def open_session(path: str):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(session, tensors: list) -> dict:
    """By position: exporters name inputs differently, and leave out none of them here."""
    names = [i.name for i in session.get_inputs()]
    if len(names) != len(tensors):
        raise ValueError(f"the file has {len(names)} inputs, the model {len(tensors)}")
    return {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}


def worst_difference(session, model) -> float:
    """Over all outputs at sizes that were not the example's, scaled by max(1, |eager|)."""
    import torch
    from llama import eager, flat, make_inputs

    worst = 0.0
    for sizes in UNSEEN:
        expected = eager(model, make_inputs(model, *sizes))
        got = session.run(None, feeds(session, flat(make_inputs(model, *sizes))))
        for want, found in zip(expected, got, strict=True):
            found = torch.from_numpy(found)
            if want.shape != found.shape:
                raise ValueError(f"at {sizes} an output has shape {list(found.shape)}, eager has {list(want.shape)}")
            worst = max(worst, ((want - found).abs() / want.abs().clamp(min=1)).max().item())
    return worst


def first_words(error: BaseException) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text.strip()}"[:300]


def main() -> None:
    how, shape, path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    measure_file = "--export-only" not in sys.argv
    warnings.simplefilter("ignore")
    row: dict = {"how": how, "shape": shape}
    try:
        found, model = export(how, shape, path)
        row |= found
        if measure_file:
            from fairlead import _core

            row["nodes"] = _core.read_summary(path)["nodes"]
            session = open_session(path)
            row["difference"] = worst_difference(session, model)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        row["error"] = first_words(error)
    print("ROW " + json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
