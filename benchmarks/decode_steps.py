"""One decode step of several files in ONNX Runtime, measured in turn in one process, so that all see the same machine.

python benchmarks/decode_steps.py '{"layers": 2}' fairlead=a.onnx torch=b.onnx
"""

from __future__ import annotations

import json
import statistics
import sys
import time

SIZES = (1, 1, 128)  # one row, one new token, 128 in the cache
WARM_UP, STEPS = 5, 200


def main() -> None:
    import torch
    from export_row import feeds, open_session
    from llama import Shape, flat, make_inputs, make_model

    torch.set_num_threads(1)
    model = make_model(Shape(**json.loads(sys.argv[1])))
    tensors = flat(make_inputs(model, *SIZES))
    del model
    ready = {}
    for word in sys.argv[2:]:
        how, _, path = word.partition("=")
        session = open_session(path)
        ready[how] = (session, feeds(session, tensors), [])
    for step in range(WARM_UP + STEPS):
        for session, inputs, times in ready.values():
            start = time.perf_counter()
            session.run(None, inputs)
            if step >= WARM_UP:
                times.append(time.perf_counter() - start)
    steps = {
        how: {"decode": statistics.median(times), "fastest_decode": min(times)} for how, (_, _, times) in ready.items()
    }
    print("ROW " + json.dumps(steps), flush=True)


if __name__ == "__main__":
    main()
