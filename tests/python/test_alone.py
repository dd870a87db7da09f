"""Exports of several threads, a model that runs beside them, and signals at any moment: everything stays as it was."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from fairlead.patches import slots
from torch.utils import _pytree as pytree
from untouched import model_state, torch_state

import fairlead

MOMENTS = int(os.environ.get("FAIRLEAD_MOMENTS", "40"))  # of each kind of signal; 150 and 150 where it is looked at


class Block(torch.nn.Module):
    """What the switches are for: attention with a fused form, a question whether it is traced, a buffer that is
    written, and a draw."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = torch.nn.Linear(8, width)
        self.register_buffer("calls", torch.zeros(()))
        self.told = None
        self.eval()

    def forward(self, x):
        self.told = torch.compiler.is_compiling()
        self.calls.add_(0)
        torch.rand(1)
        return self.head(self.encoder(x))


def everything(model: torch.nn.Module) -> dict:
    state = torch_state() | model_state(model)
    state["random"] = torch.get_rng_state().tolist()
    state["compile"] = torch.compile
    state["threads"] = threading.Thread.start, __import__("concurrent.futures").futures.ThreadPoolExecutor.submit
    state["patches"] = dict(slots._slots)
    state["trees"] = {cls for cls in pytree.SUPPORTED_NODES if cls.__module__.startswith("transformers")}
    state["flags"] = torch.compiler._is_compiling_flag, torch.backends.mha._is_fastpath_enabled
    state["flag types"] = type(torch.compiler._is_compiling_flag), type(torch.backends.mha._is_fastpath_enabled)
    return state


def test_exports_in_eight_threads_are_right_and_leave_everything_as_it_was(tmp_path):
    models = [Block(k + 1) for k in range(8)]
    before = [everything(model) for model in models]
    found: dict[int, list] = {}

    def export(k: int) -> None:
        found[k] = fairlead.export(models[k], (torch.ones(2, 5, 8),), tmp_path / f"{k}.onnx").discrepancies

    threads = [threading.Thread(target=export, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))
    assert all(row["scaled"] < 1e-4 for rows in found.values() for row in rows)
    assert [everything(model) for model in models] == before


def test_a_model_that_runs_in_another_thread_is_not_disturbed(tmp_path):
    free, x = Block(), torch.rand(2, 3, 8)
    with torch.no_grad():
        expected = free(x)
    wrong: list[str] = []
    runs, done = [], threading.Event()

    def run() -> None:
        with torch.no_grad():
            while not done.is_set():
                if not torch.equal(free(x), expected):
                    wrong.append("another result")
                if free.told or torch.compiler.is_exporting():
                    wrong.append("told that it is traced")
                if not torch.backends.mha.get_fastpath_enabled():
                    wrong.append("without the fast path")
                if torch.is_grad_enabled():
                    wrong.append("with gradients")
                runs.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        result = fairlead.export(Block(3), (torch.rand(2, 5, 8),), tmp_path / "x.onnx")
    finally:
        done.set()
        thread.join()
    assert result.discrepancies
    assert len(runs) > 10
    assert not wrong, sorted(set(wrong))


SIGNALS = """
import json, os, random, signal, sys, threading, time
sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import torch, fairlead
from test_alone import Block, everything
class Alarm(Exception):
    pass
def alarm(number, frame):
    raise Alarm
signal.signal(signal.SIGALRM, alarm)
number, error = {kind}
model, x = Block(), torch.ones(2, 5, 8)
start = time.perf_counter()
fairlead.export(model, (x,), "x.onnx")
start = time.perf_counter()
fairlead.export(model, (x,), "x.onnx")
took, draw = time.perf_counter() - start, random.Random({seed})
before, handlers = everything(model), [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
counts = dict(interrupted=0, done=0)
for moment in range({moments}):
    delay = draw.random() * took
    came = threading.Event()
    def send():
        time.sleep(delay)
        os.kill(os.getpid(), number)
        came.set()
    sender = threading.Thread(target=send)
    try:
        sender.start()
        try:
            fairlead.export(model, (x,), "x.onnx")
            counts["done"] += 1
        except error:
            counts["interrupted"] += 1
        came.wait()
        sender.join()
        time.sleep(0.001)
    except error:  # it came before the export, or after it
        pass
    now = everything(model)
    changed = sorted(key for key in before if now[key] != before[key])
    assert not changed, (moment, delay, changed)
    assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)], moment
    left = [name for name in os.listdir(".") if name.startswith(".")]
    assert not left, (moment, left)
fairlead.export(model, (x,), "x.onnx")
print(json.dumps(counts))
"""


@pytest.mark.parametrize("kind", ["signal.SIGINT, KeyboardInterrupt", "signal.SIGALRM, Alarm"])
def test_a_signal_at_any_moment_leaves_everything_as_it_was(tmp_path, kind):
    seed = int(os.environ.get("FAIRLEAD_SEED", random.SystemRandom().randrange(1 << 30)))
    text = SIGNALS.format(tests=str(Path(__file__).parent), kind=kind, moments=MOMENTS, seed=seed)
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=3000,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"FAIRLEAD_SEED={seed}\n{done.stderr}"
    counts = json.loads(done.stdout)
    assert counts["interrupted"] > MOMENTS // 3, counts
    print(kind, counts)


def test_a_signal_that_the_model_swallows_is_raised_at_the_end(tmp_path):
    calls = []

    class Deaf(torch.nn.Module):
        def forward(self, x):
            calls.append(1)
            if len(calls) == 2:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    for _ in range(1000):
                        pass
                except KeyboardInterrupt:
                    pass
            return x * 2

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            fairlead.export(Deaf().eval(), (torch.rand(3, 4),), tmp_path / "x.onnx")
    finally:
        signal.signal(signal.SIGINT, before)
