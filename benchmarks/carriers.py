"""What sizes that remember cost: recorded runs of the benchmark's Llama with them and with plain integers, in turn.

python benchmarks/carriers.py
python benchmarks/carriers.py --layers 12 --runs 9
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--runs", type=int, default=15, help="of each kind")
    args = parser.parse_args()

    import torch
    from fairlead.record.session import RecordingSession
    from llama import Shape, make_inputs, make_model

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model = make_model(Shape(layers=args.layers))
    for light in (False, True):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for k in range(args.runs + 2):
            for carry in (True, False):
                with RecordingSession(model) as session:
                    session.carry = carry
                    session.light = session.weightless if light else None
                    inputs = make_inputs(model, 2, 3, 7)
                    start = time.process_time()
                    outcome = session.run((), inputs)
                    if k > 1:  # the first ones fill caches
                        seconds[carry].append(time.process_time() - start)
                    session.light = None
                    assert outcome.ok, outcome.error
        with_them, plain = (statistics.median(seconds[carry]) for carry in (True, False))
        words = "without weights" if light else "with weights"
        print(
            f"a recorded run {words}: {with_them * 1e3:.1f} ms with sizes that remember, {plain * 1e3:.1f} ms with "
            f"plain integers: {with_them / plain - 1:+.1%} (medians of {args.runs}, CPU time)"
        )


if __name__ == "__main__":
    main()
