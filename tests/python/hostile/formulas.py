"""Random Python functions of sizes inside small modules, by seed: `formula(7)` is the same row on every machine.

A formula is source text in a file of its own, so that lines exist for what quotes them. It has three parts:
1. sizes: `n = x.shape[1]`, `m = len(y)`, `v = int(l.max())` ..., in the ways that models write them;
2. a number: an expression of depth 1 to 3, or statements (branches, loops, a cache), assigned to `k`;
3. a place: where `k` is used (a bound, a padding, a length, a factor, a choice), made fit for it (`abs(k) % 9`).
Formulas that eager refuses at the example are drawn again.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import random
import tempfile

import torch

from .rows import Row, floats, ids, lengths

HEADER = """import functools
import math

import torch
import torch.nn.functional as F


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 3 // 2 + 1


class Model(torch.nn.Module):
    def forward(self, {parameters}):
"""

# How a size is asked for. {t}: the tensor.
FIRST_AXIS = ("{t}.shape[0]", "len({t})", "{t}.size(0)", "{t}.size()[0]")
LAST_AXIS = (
    "{t}.shape[1]",
    "{t}.shape[-1]",
    "{t}.size(1)",
    "{t}.size(-1)",
    "list({t}.shape)[1]",
    "{t}[0].numel()",
    "len({t}[0])",
)
READS = ("int(l.max())", "l.max().item()", "int(l[0])", "l.tolist()[-1]", "int(l.min())", "(ids != 0).sum().item()",
         "int((ids != 0).sum(1).max())", "sum(l.tolist())", "max(l.tolist())", "int(ids.max())")  # fmt: skip

SMALL = (2, 3, 4, 5, 7, 8, 16)
LARGE = (6, 9, 10, 11, 12, 13, 15, 17, 20, 21, 24, 30, 32, 37, 41, 48, 64, 100, 128, 200)


class Draw:
    """One formula while it is drawn."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.names: list[str] = []  # of the sizes and reads

    def pick(self, *options):
        return self.random.choice(options)

    def constant(self) -> int:
        return self.random.choice(SMALL if self.random.random() < 0.6 else LARGE)

    def name(self) -> str:
        return self.random.choice(self.names)

    # ---- numbers ---------------------------------------------------------------------------------

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self.name()
        c, d = self.constant(), self.random.choice(SMALL)
        a = self.number(depth - 1)
        b = self.number(depth - 2) if self.random.random() < 0.5 else str(c)
        f = self.random.choice(("0.3", "0.37", "0.5", "0.6", "1.5", "0.25", "0.9", "2.2"))
        return self.random.choice(
            (
                f"({a} + {b})", f"({a} - {b})", f"({c} - {a})", f"({a} * {d})", f"({a} // {d})", f"({a} // {c})",
                f"({a} % {d})", f"({a} % {c})", f"(-{a} % {d})", f"(-{a} // {d})", f"(-(-{a} // {d}))", f"(({a} + {d} - 1) // {d} * {d})",
                f"({d} - {a} % {d})", f"min({a}, {b})", f"max({a}, {b})", f"min({a}, {c})", f"max({a}, {c})", f"abs({a} - {b})",
                f"divmod({a}, {d})[0]", f"divmod({a}, {d})[1]", f"sum(divmod({a}, {d}))", f"math.ceil({a} / {d})", f"math.floor({a} / {d})",
                f"math.trunc({a} / {d})", f"round({a} / {d})", f"round({a} * {f})", f"int({a} * {f})", f"int({f} * {a} + 0.5)",
                f"int({a} / {d})", f"math.ceil({a} * {f})", f"int(abs({a}) ** 0.5)", f"math.isqrt(abs({a}))", f"abs({a}) ** 2 // {c}",
                f"({a} if {self.condition(depth - 1)} else {b})", f"({c} if {self.condition(depth - 1)} else {d})", f"len(range(0, {a}, {d}))",
                f"sum(range({a} % {c}))", f"({a} >> 1)", f"({a} & ~3)", f"abs({a}).bit_length()", f"cached({a})", f"{{{c}: {d}, 8: 5}}.get({a}, {a})",
                f"(({a}) // {d} + ({b}) % {c})", f"({a} + {d} * ({self.condition(0)}))", f"sorted(({a}, {b}, {c}))[1]", f"({a} // 2 * 2 + 1)",
            )
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        a, c, d = self.number(depth), self.constant(), self.random.choice(SMALL)
        n, m = self.name(), self.name()
        return self.random.choice(
            (
                f"{a} > {c}", f"{a} < {c}", f"{a} >= {c}", f"{a} <= {c}", f"{a} == {c}", f"{a} != {c}", f"{n} < {m}", f"{n} + {m} > {c}",
                f"{n} == {m}", f"{n} > 2 * {m}", f"{n} * {m} > {c * d}", f"{a} % 2 == 0", f"{a} % {d}", f"not {a} % {d}", f"{a} in (37, 41)",
                f"{a} in ({c}, {c + 1}, 64)", f"{d} < {a} <= {c + d}", f"{n} <= {m} < {c}", f"{n} > {d} and {m} < {c}", f"{n} > {c} or {m} % {d} == 1",
                f"{n} / {d} > {m} * 0.7", f"{n} > {c}",
            )
        )  # fmt: skip

    def statements(self) -> list[str]:
        """Lines that give `k`."""
        c, d = self.constant(), self.random.choice(SMALL)
        n = self.name()
        kind = self.random.random()
        if kind < 0.55:
            return [f"k = {self.number(self.random.choice((1, 1, 2, 2, 3)))}"]
        if kind < 0.72:
            lines = [f"if {self.condition(1)}:", f"    k = {self.number(1)}"]
            if self.random.random() < 0.3:
                lines += [f"elif {self.condition(1)}:", f"    k = {self.number(1)}"]
            return [*lines, "else:", f"    k = {self.number(1)}"]
        return self.random.choice(
            (
                ["k = 0", f"for i in range({n} // {d}):", "    k += i"],
                ["k = 1", f"for _ in range({n} % {d}):", "    k = k * 2 + 1"],
                [f"k = {n}", f"while k > {c}:", "    k //= 2"],
                ["k = 1", f"while k < {n}:", "    k *= 2"],
                [f"k = {n}", f"while k % {d}:", "    k += 1"],
                ["k = 0", f"for s in ({self.number(1)}, {self.number(1)}, {c}):", f"    k += s // {d}"],
                [f"k = sum({n} // i for i in (1, 2, {d}))"],
                [f"k, r = divmod({self.number(1)}, {d})", "k += r > 0"],
                [f"k = {self.number(1)}", f"k -= {self.number(1)}", f"k *= {d}"],
                [f"k = cached({self.number(1)})"],
                [f"sizes = [{self.number(1)}, {self.number(1)}, {c}]", "k = sizes[sizes.index(max(sizes))]"],
                ["k = 0", f"for i in range(0, {n}, {d}):", f"    k += min({d}, {n} - i) % 3"],
            )
        )

    # ---- places ----------------------------------------------------------------------------------

    def fit(self, low: int, high: int) -> str:
        """`k` within low..high, in one of the ways models do it."""
        span = high - low + 1
        options = [
            f"abs(k) % {span}",
            f"max(0, min(k, {span - 1}))",
            f"(k if 0 <= k < {span} else {span // 2})",
            f"min(abs(k), {span - 1})",
        ]
        chosen = self.random.choice(options)
        return f"{low} + {chosen}" if low else chosen

    def place(self) -> list[str]:
        """Lines that use `k` and give `out`."""
        c, f = self.constant(), self.fit
        wide, narrow = f(0, 60), f(0, 9)
        return self.random.choice(
            (
                ["out = x[:, :k]"],
                ["out = x[:, k:].sum(1)"],
                ["out = x[:, -abs(k):]"],
                [f"out = x[:, k:k + {c}].cumsum(1)"],
                ["out = x[:k]"],
                [f"out = x[:, ::{f(1, 4)}]"],
                [f"out = F.pad(x, (0, {wide}))"],
                [f"out = F.pad(x, ({narrow}, 1), value=2.0).cumsum(1)"],
                [f"out = F.pad(x, (0, 0, {narrow}, 0))"],
                [f"p = {wide}", "out = F.pad(x, (p, p)).flip(1)"],
                ["out = x.narrow(1, 0, max(0, min(k, x.shape[1])))"],
                ["out = x.roll(k, 1)"],
                ["out = x.roll((k, 1), (1, 0))"],
                [f"out = torch.arange({wide}).float() + x.sum()"],
                [f"out = torch.cat([x, torch.zeros(x.shape[0], {wide})], 1)"],
                [f"out = torch.full(({f(1, 20)}, x.shape[1]), 0.5) * x[:1]"],
                [f"out = x[:, None].expand(-1, {f(1, 12)}, -1).cumsum(1)"],
                [f"out = x.repeat(1, {f(1, 5)})"],
                [f"out = x.split({f(1, 40)}, 1)[0]"],
                [f"out = x.split({f(1, 40)}, 1)[-1]"],
                [f"out = x.chunk({f(1, 6)}, 1)[0]"],
                [f"out = F.interpolate(x[None], size={f(1, 40)})[0]"],
                [f"out = F.interpolate(x[None], size={f(1, 40)}, mode='linear')[0]"],
                [f"out = F.adaptive_avg_pool1d(x, {f(1, 12)})"],
                ["out = x * k"],
                ["out = x / (abs(k) + 1)"],
                ["out = x * math.sqrt(abs(k)) + 1"],
                ["out = x + float(k) / 7"],
                ["out = x.topk(max(1, min(k, x.shape[1])), 1).values"],
                [f"out = x.relu() if k > {c} else x.tanh()"],
                ["out = x.cos() if k % 2 else x.sin()"],
                [f"if k > {c}:", "    x = x * 2", "out = x.cumsum(1)"],
                ["out = x.tril(k)"],
                ["out = x[:, k % x.shape[1]]"],
                ["out = x.index_select(1, torch.tensor([k % x.shape[1], 0]))"],
                [f"out = torch.linspace(0, 1, {f(1, 40)}) * x.mean()"],
                [f"g = {f(1, 9)}", "out = F.pad(x, (0, -x.shape[1] % g)).reshape(x.shape[0], -1, g).sum(2)"],
                [f"g = {f(1, 9)}", "out = x[:, : x.shape[1] // g * g].view(x.shape[0], g, -1).amax(1) if x.shape[1] >= g else x.sum(1)"],
                [f"out = torch.stack([x[:, i] for i in range(min({narrow}, x.shape[1]))] + [x[:, 0]], 1)"],
                [f"for _ in range({f(0, 4)}):", "    x = x * 0.5 + 1", "out = x"],
                [f"out = x.new_ones({f(1, 9)}, {f(1, 7)}) * x.mean()"],
                [f"out = F.one_hot(torch.arange(4) % {f(1, 4)}, {f(4, 9)}).float() + x.mean()"],
                ["out = torch.tensor([k, x.shape[0]]) * 2"],
                [f"out = x.unfold(1, min({f(1, 6)}, x.shape[1]), 1).sum(-1)"],
                ["h = torch.zeros(x.shape[0])", f"for t in range(0, x.shape[1], {f(3, 9)}):", "    h = h * 0.5 + x[:, t]", "out = h"],
            )
        )  # fmt: skip


def drawn_source(draw: Draw) -> tuple[str, tuple]:
    """(text, inputs)"""
    pick, r = draw.pick, draw.random
    two, reads = r.random() < 0.45, r.random() < 0.25
    n = pick(4, 5, 6, 7, 8, 9, 10, 12, 13, 17, 23, 33)
    m = n if r.random() < 0.15 else pick(3, 5, 6, 8, 11, 14, 19)
    rows = pick(1, 2, 3, 3, 4, n if n < 8 else 2)
    parameters, inputs, lines = ["x"], [floats(rows, n)], [f"n = {pick(*LAST_AXIS).format(t='x')}"]
    draw.names = ["n", "n"]
    if r.random() < 0.3:
        lines.append(f"b = {pick(*FIRST_AXIS).format(t='x')}")
        draw.names.append("b")
    if r.random() < 0.08:
        lines.append("s = x.numel()")
        draw.names.append("s")
    if two:
        parameters.append("y")
        inputs.append(floats(pick(rows, 2), m))
        lines.append(f"m = {pick(*LAST_AXIS).format(t='y')}")
        draw.names += ["m", "m"]
    if reads:
        read = pick(*READS)
        name = "ids" if "ids" in read else "l"
        parameters.append(name)
        inputs.append(ids(rows, n, high=6) if name == "ids" else lengths(rows))
        lines.append(f"v = {read}")
        draw.names += ["v", "v", "v"]
    lines += draw.statements()
    lines += draw.place()
    if two and r.random() < 0.8:
        lines.append("out = out + y.sum()")
    lines.append("return out")
    body = "\n".join("        " + line for line in lines)
    return HEADER.format(parameters=", ".join(parameters)) + body + "\n", tuple(inputs)


@functools.cache
def folder() -> str:
    return tempfile.mkdtemp(prefix="formulas-")


def load(name: str, text: str) -> type[torch.nn.Module]:
    path = os.path.join(folder(), f"{name}.py")
    with open(path, "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model


def formula(seed: int) -> Row:
    """The first formula from this seed on that eager accepts at its example."""
    for attempt in range(100):
        text, inputs = drawn_source(Draw(seed * 100 + attempt))
        row = Row("formulas", f"seed {seed}", load(f"formula_{seed}_{attempt}", text), inputs)
        try:
            with torch.no_grad():
                out = row.build()(*row.call())
        except Exception:
            continue
        if out.numel() < 100_000:
            shapes = ", ".join(str(list(k.shape)) for k in inputs)
            row.source = text[text.index("    def forward") :] + f"    # example: {shapes}"
            row.build = Built(row.build)
            # Coordinates of hundreds are rounded, and what lies between two values moves with them.
            row.tolerance = 10.0 if "linear" in text else 1.0
            return row
    raise AssertionError(f"no formula from seed {seed} that eager accepts")


class Built:
    def __init__(self, cls):
        self.cls = cls

    def __call__(self) -> torch.nn.Module:
        return self.cls().eval()
