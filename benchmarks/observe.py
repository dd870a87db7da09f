"""What observing costs: `generate` plain, observed, and observed by a peer; and inference over many calls.

    python benchmarks/observe.py                     one table; --tokens 64 --rounds 5 --layers 30
    python benchmarks/observe.py --peer FOLDER       FOLDER holds the peer, yobx, and what it needs

The rounds of all variants alternate in one process, so that a noisy machine is noisy for all of them. Both
the clock and the processor time of this process are shown; on a busy machine trust the latter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import torch
from fairlead._core import ObservedCalls
from fairlead.tree.dtypes import DTYPES
from transformers import LlamaConfig, LlamaForCausalLM

from fairlead import InputObserver


def model_of_135m(layers: int) -> LlamaForCausalLM:
    """The sizes of SmolLM-135M with random weights."""
    config = LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=layers, num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def generate(model, tokens: int) -> None:
    inputs = {
        "input_ids": torch.ones(1, 16, dtype=torch.int64),
        "attention_mask": torch.ones(1, 16, dtype=torch.int64),
    }
    model.generate(**inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)


def stored_bytes(observer: InputObserver) -> tuple[int, int]:
    """Bytes of the tensors kept, and of the calls' own tensors: inputs and outputs."""
    kept = sum(
        t.untyped_storage().nbytes() for c in observer.info.inputs for t in (*c.flat_list, *(c.outputs or {}).values())
    )
    needed = sum(
        t.numel() * t.element_size() for c in observer.info.inputs for t in (*c.flat_list, *(c.outputs or {}).values())
    )
    return kept, needed


def time_generate(args: argparse.Namespace) -> None:
    torch.manual_seed(0)
    model = model_of_135m(args.layers)
    print(
        f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters, {args.tokens} tokens, "
        f"{args.rounds} rounds"
    )
    observers: list[InputObserver] = []

    def observed(calls: int):
        observer = InputObserver()
        observers.append(observer)
        with observer(model, store_n_calls=calls):
            generate(model, args.tokens)

    variants = {
        "plain": lambda: generate(model, args.tokens),
        "fairlead, 3 calls": lambda: observed(3),
        f"fairlead, {args.tokens} calls": lambda: observed(args.tokens),
    }
    if args.peer:
        sys.path.append(args.peer)
        from yobx.torch import register_flattening_functions as peer_register
        from yobx.torch.input_observer import InputObserver as PeerObserver

        def peer(calls: int):
            observer = PeerObserver()
            with peer_register(patch_transformers=True), observer(model, store_n_calls=calls):
                generate(model, args.tokens)

        variants["yobx, 3 calls"] = lambda: peer(3)
        variants[f"yobx, {args.tokens} calls"] = lambda: peer(args.tokens)
    times: dict[str, list[float]] = {name: [] for name in variants}
    busy: dict[str, list[float]] = {name: [] for name in variants}
    for round_number in range(args.rounds + 1):
        for name, run in variants.items():
            start, processor = time.perf_counter(), time.process_time()
            run()
            if round_number:  # the first round warms up
                times[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - processor)
    for name in variants:
        wall, cpu = statistics.median(times[name]), min(busy[name])
        more = 100 * (wall / statistics.median(times["plain"]) - 1)
        more_cpu = 100 * (cpu / min(busy["plain"]) - 1)
        print(
            f"{name:20} clock {wall:7.3f} s {more:+6.2f} %   processor, best {cpu:7.3f} s {more_cpu:+6.2f} %",
            flush=True,
        )
    kept, needed = stored_bytes(observers[0])
    print(f"kept for 3 calls: {kept / 1e6:.2f} MB, of which the calls' tensors are {needed / 1e6:.2f} MB")


def time_inference(calls: int, tensors: int) -> None:
    core = ObservedCalls([], DTYPES)
    keys = [f"t{i}" for i in range(tensors)]
    tokens = [*[...] * tensors, (2, keys)]
    start = time.perf_counter()
    for call in range(calls):
        short, long = torch.empty(2, 1 + call % 7, device="meta"), torch.empty(2, 4, call, 8, device="meta")
        core.add(tokens, [short if i == 0 else long for i in range(tensors)])
    added = time.perf_counter() - start
    start = time.perf_counter()
    inference = core.infer()
    seconds = time.perf_counter() - start
    print(
        f"{calls} calls of {tensors} tensors: inferred in {seconds:.3f} s ({len(inference.groups)} "
        f"groups); added in {added:.1f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", default=None)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    time_inference(options.calls, options.tensors)
    time_generate(options)
