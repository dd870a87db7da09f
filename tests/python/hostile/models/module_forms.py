"""Modules that do more than compute, and calls and results of every form."""

# ruff: noqa: E701, E702

import concurrent.futures
import copy
import dataclasses
import threading
import weakref
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import torch.nn.utils.prune
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from ..rows import floats, row

# fmt: off

X = floats(3, 9)
X4 = floats(3, 6, 4)
def mod(fn, init=None):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.lin = nn.Linear(4, 4)
            if init: init(self)
        def forward(self, *a, **k):
            return fn(self, *a, **k)
    return M
def add(family, name, fn, *inputs, init=None, **kw):
    row(family, name, mod(fn, init), *inputs, **kw)
# state and python objects
def i(**kw):
    def init(self):
        for k, v in kw.items():
            if isinstance(v, torch.Tensor): self.register_buffer(k, v.clone())
            else: setattr(self, k, v() if callable(v) else v)
    return init
def running(self, x):
    self.mean.mul_(0.9).add_(x.mean((0, 1)) * 0.1)
    return x - self.mean
def counter_buffer(self, x):
    self.n += 1
    return x * self.n
def counter_python(self, x):
    self.k += 1
    return x + self.k
def stash(self, x):
    y = self.lin(x)
    self.last = y
    return y * self.last.mean()
def stash_before(self, x):
    y = self.lin(x)
    out = y if self.last is None else y + self.last.mean()
    self.last = y
    return out
def list_state(self, x):
    self.seen.append(x.shape[1])
    return x * len(self.seen)
def dict_cache(self, x):
    if x.shape[1] not in self.cache:
        self.cache[x.shape[1]] = torch.arange(x.shape[1])
    return x + self.cache[x.shape[1]][:, None]
def dict_cache_device(self, x):
    key = (x.shape[1], x.dtype, str(x.device))
    if key not in self.cache:
        self.cache[key] = torch.linspace(0, 1, x.shape[1])
    return x * self.cache[key][:, None]
def grow_table(self, x):
    if self.table.shape[0] < x.shape[1]:
        self.table = torch.arange(2 * x.shape[1]).float()
    return x + self.table[: x.shape[1], None]
def weak(self, x):
    r = weakref.ref(x)
    return r() * 2
def threaded(self, x):
    out = [None, None]
    def work(k): out[k] = self.lin(x) * (k + 1)
    ts = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    [t.start() for t in ts]; [t.join() for t in ts]
    return out[0] + out[1]
def pooled(self, x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(self.lin, x.unbind(0)))
def grads(self, x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(self.lin(y).square().sum(), y)
    return g
def jac(self, x):
    return torch.func.jacrev(lambda v: v.sum(0) ** 2)(x[0])
def functional(self, x):
    return torch.func.functional_call(self.lin, {"weight": self.lin.weight * 2, "bias": self.lin.bias}, (x,))
def stacked(self, x):
    params = {k: torch.stack([v, v * 2]) for k, v in self.lin.named_parameters()}
    return torch.vmap(lambda p, v: torch.func.functional_call(self.lin, p, (v,)), in_dims=(0, None))(params, x)
def vmapped(self, x):
    return torch.vmap(self.lin)(x)
def vmapped_twice(self, x):
    return torch.vmap(torch.vmap(lambda r: r.softmax(0)), in_dims=1, out_dims=1)(x)
def inference(self, x):
    with torch.inference_mode():
        return self.lin(x).clone()
def autocast(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        return self.lin(x).float()
def autocast_nested(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        y = self.lin(x)
        with torch.autocast("cpu", enabled=False):
            z = self.lin(y.float())
    return y, z
def parameter_in_forward(self, x):
    return F.linear(x, nn.Parameter(self.lin.weight.detach() * 2))
def module_in_forward(self, x):
    torch.manual_seed(4)
    return nn.Linear(4, 2)(x)
def deep(self, x):
    return copy.deepcopy(self.lin)(x)
def data(self, x):
    return x @ self.lin.weight.data.T
def tied(self, x):
    return F.linear(F.linear(x, self.lin.weight), self.lin.weight.T)
def pruned(self): torch.nn.utils.prune.l1_unstructured(self.lin, "weight", 0.5)
def hooked(self):
    self.lin.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
    self.lin.register_forward_hook(lambda m, a, o: o + a[0].shape[1])
def hook_kw(self):
    self.lin.register_forward_hook(lambda m, a, k, o: o * k.get("scale", 2), with_kwargs=True)
class Scaled(nn.Module):
    def forward(self, w): return w / w.norm()
def plain(self, x): return self.lin(x)
for name, (fn, init) in {
    "running mean in a buffer": (running, i(mean=torch.zeros(4))), "counter in a buffer": (counter_buffer, i(n=torch.tensor(0))), "counter in python": (counter_python, i(k=0)), "kept output": (stash, None), "kept output of the last call": (stash_before, i(last=None)), "list of sizes": (list_state, i(seen=list)), "cache by a size": (dict_cache, i(cache=dict)), "cache by a tuple": (dict_cache_device, i(cache=dict)), "table that grows": (grow_table, i(table=torch.arange(4.0))), "weak reference": (weak, None), "two threads": (threaded, None), "pool of threads": (pooled, None), "gradient": (grads, None), "jacobian": (jac, None), "functional_call": (functional, None), "stacked modules": (stacked, None), "vmap": (vmapped, None), "vmap twice": (vmapped_twice, None), "inference mode": (inference, None), "autocast": (autocast, None), "autocast nested": (autocast_nested, None), "parameter made inside": (parameter_in_forward, None), "module made inside": (module_in_forward, None), "deep copy": (deep, None), "data": (data, None), "tied": (tied, None),
    "pruned": (plain, pruned), "hooked": (plain, hooked), "hooked with keywords": (plain, hook_kw), "spectral norm": (plain, lambda s: parametrizations.spectral_norm(s.lin)), "weight norm": (plain, lambda s: parametrizations.weight_norm(s.lin)), "orthogonal": (plain, lambda s: parametrizations.orthogonal(s.lin)), "parametrized": (plain, lambda s: parametrize.register_parametrization(s.lin, "weight", Scaled())), "old weight norm": (plain, lambda s: torch.nn.utils.weight_norm(s.lin)), "frozen": (plain, lambda s: s.requires_grad_(False)), "bfloat16 weights": (lambda s, x: s.lin(x.bfloat16()).float(), lambda s: s.lin.bfloat16()), "half weights": (lambda s, x: s.lin(x.half()), lambda s: s.lin.half()), "double weights": (lambda s, x: s.lin(x.double()), lambda s: s.lin.double()),
    "scripted child": (plain, lambda s: setattr(s, "lin", torch.jit.script(s.lin))), "traced child": (plain, lambda s: setattr(s, "lin", torch.jit.trace(s.lin, torch.randn(2, 3, 4)))), "compiled child": (plain, lambda s: setattr(s, "lin", torch.compile(s.lin))), "fx child": (plain, lambda s: setattr(s, "lin", torch.fx.symbolic_trace(s.lin))), "data parallel": (plain, lambda s: setattr(s, "lin", nn.DataParallel(s.lin))),
}.items():
    # A product in bfloat16 may be the neighbour of eager's.
    rounded = {"tolerance": 100.0} if "autocast" in name or "bfloat16" in name else {}
    add("modules more", name, fn, X4, init=init, largest=41, **rounded)

# inputs of every form
class Pair(NamedTuple):
    a: Any
    b: Any
@dataclasses.dataclass
class Out:
    y: Any
    n: int
    name: str = "out"
A, B = floats(3, 6), floats(3, 6)
for name, (fn, inputs) in {
    "none first": (lambda s, m, x: x * 2 if m is None else x * m, (None, A)), "none in a list": (lambda s, xs: sum(x for x in xs if x is not None), ([A, None, B],)), "empty list": (lambda s, xs, x: x + len(xs), ([], A)), "empty dict": (lambda s, d, x: x + len(d), ({}, A)), "nested namedtuple": (lambda s, p: p.a.a + p.b, (Pair(Pair(A, None), B),)), "list of lists": (lambda s, q: torch.cat([torch.cat(r, 1) for r in q]), ([[A, A], [B, B]],)), "dict of lists": (lambda s, d, k: sum(d["a"]) * d["b"][0] * k, ({"a": [A, A], "b": [B]}, 2)), "tuple of numbers": (lambda s, x, k: x.reshape(x.shape[0], *k), (A, (2, 3))), "string and number": (lambda s, x, how, k: getattr(x, how)(k), (A, "sum", 1)), "flag": (lambda s, x, flag=True: x.cos() if flag else x.sin(), (A, False)), "float": (lambda s, x, p=0.5: x * p, (A, 0.25)), "dtype": (lambda s, x, d: x.to(d), (A, torch.float64)), "number as large as a size": (lambda s, x, k: x[:, :k], (A, 6)), "number below a size": (lambda s, x, k: x[:, :k], (A, 4)), "slice": (lambda s, x, k: x[:, k], (A, slice(1, 4))), "tensor and its view": (lambda s, x, y: x + y, (A, B)), "default tensors": (lambda s, x, y=None: x if y is None else x + y, (A,)), "given default": (lambda s, x, y=None: x if y is None else x + y, (A, B)),
    "out: nothing": (lambda s, x: (x, None), (A,)), "out: numbers": (lambda s, x: (x * 2, x.shape[1], x.shape[1] / 2, x.shape[1] > 5), (A,)), "out: text": (lambda s, x: {"y": x * 2, "name": "a"}, (A,)), "out: nested": (lambda s, x: {"a": [x, {"b": (x * 2,)}]}, (A,)), "out: dataclass": (lambda s, x: Out(x * 2, x.shape[1]), (A,)), "out: namedtuple": (lambda s, x: Pair(x * 2, [x]), (A,)), "out: the same thrice": (lambda s, x: [x.cos()] * 3, (A,)), "out: input and view": (lambda s, x: (x, x[:, 1:], x.T), (A,)), "out: a weight": (lambda s, x: (x, s.lin.weight), (A,)), "out: a constant": (lambda s, x: (x, torch.arange(3)), (A,)), "out: a range of a size": (lambda s, x: torch.arange(x.shape[1]), (A,)), "out: an empty list": (lambda s, x: (x, []), (A,)), "out: size as a tensor": (lambda s, x: torch.tensor(x.shape), (A,)), "out: item": (lambda s, x: (x, x.sum().item()), (A,)), "out: tolist": (lambda s, x: (x, x[0, :2].tolist()), (A,)), "out: torch.Size": (lambda s, x: (x, x.shape), (A,)), "out: generator": (lambda s, x: tuple(r for r in x.unbind(1)[:2]), (A,)), "out: set of one": (lambda s, x: {"k": x}, (A,)), "out: complex": (lambda s, x: torch.complex(x, x), (A,)), "out: bool": (lambda s, x: x > 0, (A,)), "out: 0-d": (lambda s, x: x.sum(), (A,)), "out: int of a sum": (lambda s, x: (x > 0).sum(), (A,)), "out: half": (lambda s, x: x.half(), (A,)), "out: sparse": (lambda s, x: x.to_sparse(), (A,)), "out: expand": (lambda s, x: x[:, :1].expand(-1, 5), (A,)), "out: uint8": (lambda s, x: (x > 0).to(torch.uint8), (A,)),
    "written input": (lambda s, x: x.add_(1) * 2, (A,)), "written input, returned": (lambda s, x: (x.mul_(2), x)[1], (A,)), "written view of an input": (lambda s, x: (x[:, 0].zero_(), x)[1], (A,)), "written list": (lambda s, xs: (xs.append(xs[0] * 2), torch.stack(xs[:2]))[1], ([A, B],)), "written dict": (lambda s, d, k: (d.update(c=d["a"] * k), d["c"])[1], ({"a": A}, 2)), "popped dict": (lambda s, d, k: d.pop("a") * k + len(d), ({"a": A, "b": B}, 2)), "input assigned": (lambda s, x: (x.copy_(x.flip(1)), x + 1)[1], (A,)), "input resized": (lambda s, x: x.clone().resize_(x.shape[0], 3), (A,)), "input transposed in place": (lambda s, x: x.t_() * 2, (A,)), "input unsqueezed in place": (lambda s, x: x.unsqueeze_(0) * 2, (A,)), "input set": (lambda s, x: x.data.mul(2), (A,)),
}.items():
    add("forms", name, fn, *inputs, largest=41)
row("forms", "keywords in another order", mod(lambda s, *, b, a: a - b * 2), {"b": A, "a": B})
row("forms", "keywords and more", mod(lambda s, x, **kw: x + sum(kw.values())), {"x": A, "y": B, "z": B})
row("forms", "one input twice", mod(lambda s, x, y: x * y.sum()), A, A)
# fmt: on
