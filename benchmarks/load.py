"""Load: many exports in one process, programs of many operators, calls of many inputs, trees of many levels.

python benchmarks/load.py exports --count 1000      20 models in turn: memory and descriptors after each 100
python benchmarks/load.py operators 25000 50000 100000
python benchmarks/load.py inputs 1000 10000
python benchmarks/load.py levels 100 5000

Times are of the processor. What is printed is in results/load.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import nn
from torch.nn import functional as F

import fairlead


class Called(nn.Module):
    def __init__(self, function: Callable, *modules: nn.Module):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args):
        return self.function(*self.parts, *args)


def models() -> list[tuple[str, nn.Module, tuple]]:
    """Twenty small ones, a family each."""
    torch.manual_seed(0)
    x, ids, picture = torch.rand(3, 8), torch.randint(0, 16, (2, 5)), torch.rand(2, 3, 8, 8)
    made = [
        ("linear", nn.Linear(8, 4), (x,)),
        ("mlp", nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2)), (x,)),
        ("embedding", nn.Embedding(16, 8), (ids,)),
        ("convolution", nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2)), (picture,)),
        ("transposed", nn.ConvTranspose2d(3, 4, 2, 2), (picture,)),
        ("encoder", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (torch.rand(2, 5, 8),)),
        ("lstm", Called(lambda m, x: m(x)[0], nn.LSTM(8, 4, batch_first=True)), (torch.rand(2, 5, 8),)),
        ("gru", Called(lambda m, x: m(x)[0], nn.GRU(8, 4, batch_first=True)), (torch.rand(2, 5, 8),)),
        ("view", Called(lambda x: x.view(x.shape[0], 2, -1).transpose(0, 1)), (x,)),
        ("reduce", Called(lambda x: (x.sum(0), x.amax(1), x.softmax(-1))), (x,)),
        ("sort", Called(lambda x: x.sort(-1)), (x,)),
        ("gather", Called(lambda x, i: x.gather(1, i)), (x, torch.randint(0, 8, (3, 4)))),
        ("scatter", Called(lambda x, i: x.index_add(0, i, x)), (x, torch.tensor([0, 2, 1]))),
        ("pad", Called(lambda x: F.pad(x, (1, 2), value=3.0)), (x,)),
        ("resize", Called(lambda x: F.interpolate(x, scale_factor=2.0)), (picture,)),
        ("written", Called(lambda x: x.clone().mul_(2)[1:].add_(1)), (x,)),
        ("nonzero", Called(lambda x: x[x > 0.5]), (x,)),
        ("branch", Called(lambda x: x * 2 if x.shape[0] > 4 else x + 1), (x,)),
        ("loop", Called(lambda x: torch.stack([x[k] * k for k in range(x.shape[0])])), (x,)),
        ("einsum", Called(lambda x, y: torch.einsum("ij,kj->ik", x, y)), (x, torch.rand(4, 8))),
    ]
    return [(name, model.eval(), inputs) for name, model, inputs in made]


def memory() -> tuple[int, int]:
    """Resident bytes and open descriptors."""
    gc.collect()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * resource.getpagesize(), len(os.listdir("/proc/self/fd"))


def exports(count: int) -> int:
    folder, table = tempfile.mkdtemp(prefix="fairlead-load-"), models()
    print("| exports | resident MB | descriptors | CPU s |")
    print("| --- | --- | --- | --- |")
    seen = []
    for number in range(1, count + 1):
        name, model, inputs = table[number % len(table)]
        fairlead.export(model, inputs, f"{folder}/{name}.onnx")
        if number % max(1, count // 10) == 0:
            seen.append(memory())
            print(f"| {number} | {seen[-1][0] / 1e6:.0f} | {seen[-1][1]} | {time.process_time():.0f} |", flush=True)
    grown = (seen[-1][0] - seen[len(seen) // 2 - 1][0]) / 1e6
    print(f"second half: {grown:+.1f} MB, {seen[-1][1] - seen[len(seen) // 2 - 1][1]:+d} descriptors")
    return 1 if grown > 10 or seen[-1][1] != seen[len(seen) // 2 - 1][1] else 0


def timed(words: str, model: nn.Module, inputs: tuple, **options) -> None:
    folder = tempfile.mkdtemp(prefix="fairlead-load-")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    start, wall = time.process_time(), time.perf_counter()
    try:
        result = fairlead.export(model.eval(), inputs, f"{folder}/x.onnx", **options)
    except fairlead.FairleadError as error:
        print(f"{words}: {time.process_time() - start:.2f} s CPU: {str(error)[:200]}", flush=True)
        return
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    scale = cpu / wall  # stages are timed by the clock
    parts = ", ".join(f"{k} {v * scale:.2f}" for k, v in result.timings.items() if k != "total")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{words}: {cpu:.2f} s CPU ({parts}), {most - before:.0f} MB above {before:.0f}", flush=True)


class Chain(nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.count = count

    def forward(self, x):
        for _ in range(self.count // 2):
            x = torch.sin(x) + 1.0
        return x


class Many(nn.Module):
    def forward(self, xs):
        return torch.cat(list(xs), 0).sum(0)


class Deep(nn.Module):
    def forward(self, x, tree):
        return x + 1


def nested(levels: int) -> list:
    tree: list = []
    for _ in range(levels):
        tree = [tree]
    return tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["exports", "operators", "inputs", "levels"])
    parser.add_argument("sizes", type=int, nargs="*")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--no-verify", action="store_true")
    given = parser.parse_args()
    fairlead.export(nn.ReLU().eval(), (torch.rand(2, 2),), None)  # imports and first uses
    if given.what == "exports":
        return exports(given.count)
    for size in given.sizes:
        if given.what == "operators":
            timed(f"{size} operators", Chain(size), (torch.rand(2, 2),), verify=not given.no_verify)
        elif given.what == "inputs":
            inputs = ([torch.rand(2, 3) for _ in range(size)],)
            timed(f"{size} inputs", Many(), inputs, verify=not given.no_verify)
        else:
            timed(f"{size} levels", Deep(), (torch.rand(2, 2), nested(size)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
