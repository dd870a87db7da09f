"""What Python and its library make of a size, each used in one of three places."""

# ruff: noqa: B905, E701, RUF015, UP031

import array
import bisect
import collections
import copy
import datetime
import decimal
import enum
import fractions
import functools
import heapq
import itertools
import math
import operator
import re
import statistics
import string
import zlib

import numpy as np
import torch
import torch.nn.functional as F

from ..rows import floats, row

# fmt: off

X = floats(3, 9)
# Python on sizes
@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.cache
def table(n, d):
    return torch.arange(n)[:, None] * torch.arange(d)
@functools.singledispatch
def generic(n, x):
    return x
@generic.register
def _(n: int, x):
    return x * n
class Meta(type):
    def __call__(cls, n):
        return n * 2
class Twice(metaclass=Meta):
    pass
class Box:
    def __init__(self, n): self.n = n
    def __add__(self, o): return Box(self.n + o.n)
    def __lt__(self, o): return self.n < o.n
    def __index__(self): return self.n
    def __eq__(self, o): return self.n == o.n
    def __hash__(self): return hash(self.n)
    def __len__(self): return self.n
    def __bool__(self): return self.n > 5
    def __iter__(self): return iter(range(self.n))
    def __contains__(self, k): return k < self.n
    def __getitem__(self, k): return self.n * k
class Level(enum.IntEnum):
    LOW = 4
    HIGH = 20
def gen(n):
    a, b = 0, 1
    while a < n:
        yield a
        a, b = b, a + b
def collatz(n):
    k = 0
    while n != 1 and k < 40:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k
def digits(n, base):
    out = []
    while n:
        n, r = divmod(n, base)
        out.append(r)
    return out
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a
def primes(n):
    return sum(all(k % d for d in range(2, k)) for k in range(2, min(n, 40)))
def power_of(n):
    return n & (n - 1) == 0
def binary(n):
    lo, hi = 0, n
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if mid * mid <= n: lo = mid
        else: hi = mid
    return lo
def matched(n):
    match n:
        case 1 | 2: return 10
        case 9: return 20
        case k if k > 30: return 30
        case _: return 40
def tried(n):
    try:
        return 100 // (n - 9)
    except ZeroDivisionError:
        return 7
def finally_(n):
    k = n
    try:
        if n > 20: return k
        k += 1
    finally:
        k += 2
    return k
def nested(n):
    total = 0
    def add(k):
        nonlocal total
        total += k
    for k in range(min(n, 6)): add(k)
    return total
def star(*sizes, **named): return sum(sizes) + named.get("k", 0)
class Chain(collections.UserDict): pass
S = {
    "fibonacci by a cache": lambda n: fib(min(n, 20)) % 50, "twice by a metaclass": lambda n: Twice(n), "boxed sum": lambda n: (Box(n) + Box(2)).n, "boxed comparison": lambda n: 5 if Box(n) < Box(12) else 6, "boxed index": lambda n: operator.index(Box(n)), "boxed truth": lambda n: 3 if Box(n) else 4, "boxed length": lambda n: len(Box(n)), "boxed iteration": lambda n: sum(1 for _ in Box(n)), "boxed membership": lambda n: 2 if 10 in Box(n) else 3, "boxed equality": lambda n: 2 if Box(n) == Box(9) else 3, "boxed hash": lambda n: len({Box(n), Box(9)}), "boxed item": lambda n: Box(n)[3],
    "enum": lambda n: 2 if n > Level.HIGH else 3 if n > Level.LOW else 4, "enum by value": lambda n: Level(20).value + n, "fibonacci generator": lambda n: sum(1 for _ in gen(n)), "collatz": lambda n: collatz(n), "digits": lambda n: len(digits(n, 3)), "sum of digits": lambda n: sum(digits(n, 10)), "gcd by a loop": lambda n: gcd(n, 12), "primes below": lambda n: primes(n), "power of two": lambda n: 2 if power_of(n) else 3, "binary search": lambda n: binary(n), "match": lambda n: matched(n), "division by nothing": lambda n: tried(n), "finally": lambda n: finally_(n), "nonlocal": lambda n: nested(n), "star arguments": lambda n: star(n, 2, k=n // 2),
    "reduce": lambda n: functools.reduce(lambda a, b: a + b, range(n), 0) % 37, "partial": lambda n: functools.partial(operator.add, n)(3), "itemgetter": lambda n: operator.itemgetter(1)((2, n)), "methodcaller": lambda n: operator.methodcaller("__add__", 3)(n), "attrgetter": lambda n: operator.attrgetter("n")(Box(n)), "heap": lambda n: heapq.nsmallest(2, [n, 12, 30])[1], "bisect": lambda n: bisect.bisect([4, 8, 16, 32], n), "median": lambda n: statistics.median([n, 12, 30]), "mean": lambda n: int(statistics.mean([n, 12])), "fraction": lambda n: int(fractions.Fraction(n, 4) * 3), "decimal": lambda n: int(decimal.Decimal(n) / 4), "string repeat": lambda n: len("ab" * n), "string format width": lambda n: len(f"{3:>{n}}"), "string join": lambda n: len(",".join(str(k) for k in range(min(n, 12)))), "zfill": lambda n: len(str(5).zfill(n)), "encode": lambda n: len(str(n).encode()), "hash of text": lambda n: zlib.crc32(str(n).encode()) % 7, "chr": lambda n: ord(chr(n + 60)) - 60, "bin": lambda n: bin(n).count("1"), "oct": lambda n: len(oct(n)), "int of base": lambda n: int(str(n % 8), 8), "bytes": lambda n: len(bytes(n)), "bytearray": lambda n: len(bytearray(n)), "array": lambda n: array.array("i", [n])[0], "to_bytes": lambda n: int.from_bytes(n.to_bytes(4, "big"), "big"), "complex": lambda n: int(abs(complex(n, 0))), "float hex": lambda n: int(float.fromhex(float(n).hex())), "as_integer_ratio": lambda n: (n / 4).as_integer_ratio()[1], "is_integer": lambda n: 2 if (n / 3).is_integer() else 3, "conjugate": lambda n: n.conjugate(), "numerator": lambda n: n.numerator + n.denominator, "real": lambda n: n.real + n.imag, "round to tens": lambda n: round(n, -1), "trunc": lambda n: math.trunc(n / 4), "ceil of negative": lambda n: -math.ceil(-n / 4), "floor of negative": lambda n: -math.floor(-n / 4), "fmod": lambda n: int(math.fmod(n, 4)), "remainder": lambda n: int(math.remainder(n, 4)) + 3, "copysign": lambda n: int(math.copysign(n, 1)), "fabs": lambda n: int(math.fabs(n - 12)), "modf": lambda n: int(math.modf(n / 4)[1]), "frexp": lambda n: math.frexp(n)[1], "ldexp": lambda n: int(math.ldexp(n, 1)), "cbrt": lambda n: round(n ** (1 / 3)), "log10": lambda n: int(math.log10(n)), "log base": lambda n: int(math.log(n, 3) + 1e-9), "log1p": lambda n: int(math.log1p(n)), "exp": lambda n: int(math.exp(n / 100) * 10), "sin": lambda n: int(10 * math.sin(n)) + 10, "atan2": lambda n: int(10 * math.atan2(n, 5)), "hypot": lambda n: int(math.hypot(n, 5)), "dist": lambda n: int(math.dist([n], [5])), "perm": lambda n: math.perm(min(n, 9), 2), "nextafter": lambda n: int(math.nextafter(n, 0)), "divmod negative": lambda n: sum(divmod(-n, 4)) + 400, "pow mod": lambda n: pow(3, n, 7), "pow negative": lambda n: int(100 * 2 ** -(n % 5)), "shift": lambda n: (1 << (n % 5)) + (n >> 1), "xor": lambda n: n ^ 5, "and or": lambda n: (n & 12) | 1, "invert": lambda n: ~n + 2 * n, "bool arithmetic": lambda n: (n > 5) + (n > 10) * 2, "chained": lambda n: 2 if 5 < n < 12 < 30 else 3, "ternary": lambda n: n if n % 2 else n // 2, "walrus": lambda n: (k := n // 2) + k % 3, "unpack": lambda n: [*range(min(n, 4)), n][-1], "dict comprehension": lambda n: len({k % 5: k for k in range(n)}), "set comprehension": lambda n: len({k % 5 for k in range(n)}), "zip strict": lambda n: sum(a * b for a, b in zip(range(n), range(3))), "enumerate": lambda n: max(i for i, _ in enumerate(range(n))), "any": lambda n: 2 if any(n % k == 0 for k in (2, 3)) else 5, "all": lambda n: 2 if all(n % k for k in (2, 3)) else 5, "sorted": lambda n: sorted([n, 12, 5])[1], "sorted by a key": lambda n: sorted([n, 12, 5], key=lambda v: -v)[0], "reversed": lambda n: list(reversed([n, 2]))[1], "index of": lambda n: [3, n, 5].index(n), "count of": lambda n: [9, n, 9].count(9), "slice object": lambda n: len(range(*slice(1, None, 2).indices(n))), "range membership": lambda n: 2 if n in range(0, 100, 3) else 3, "range length": lambda n: len(range(2, n, 3)), "range last": lambda n: range(0, n, 4)[-1], "range sum": lambda n: sum(range(n)) % 50, "deque": lambda n: len(collections.deque(range(n), 6)), "counter": lambda n: collections.Counter(range(n))[5] + 1, "defaultdict": lambda n: collections.defaultdict(lambda: 4, {9: 2})[n], "ordered": lambda n: list(collections.OrderedDict([(n, 1), (9, 2)]))[0], "chainmap": lambda n: collections.ChainMap({9: 3}, {n: 5})[n], "userdict": lambda n: Chain({n: 4})[n], "get": lambda n: {9: 3, 12: 4}.get(n, 5), "setdefault": lambda n: {}.setdefault(n, n // 2), "pop": lambda n: [n, 2].pop(0), "sum of a list": lambda n: sum([n, 2, n // 3]), "prod": lambda n: math.prod([n, 2]), "accumulate": lambda n: list(itertools.accumulate([n, 2]))[-1], "takewhile": lambda n: len(list(itertools.takewhile(lambda k: k * k < n, itertools.count()))), "groupby": lambda n: len(list(itertools.groupby(range(n), key=lambda k: k // 4))), "batched": lambda n: len([1 for _ in range(0, n, 4)]), "product": lambda n: len(list(itertools.product(range(min(n, 5)), range(2)))), "cycle": lambda n: list(itertools.islice(itertools.cycle([2, 3, 4]), n))[-1], "islice": lambda n: len(list(itertools.islice(range(100), n // 2))), "namedtuple": lambda n: collections.namedtuple("P", "a b")(n, 2).a, "copy": lambda n: copy.deepcopy([n])[0], "eval": lambda n: eval("n // 2 + 1", {"n": n}), "exec": lambda n: executed(n), "getattr": lambda n: n.__add__(3), "type": lambda n: type(n)(3) + n, "isinstance": lambda n: n if isinstance(n, int) else 0, "type is int": lambda n: n // 2 if type(n) is int else n // 3, "repr": lambda n: int(repr(n)), "format spec": lambda n: int(f"{n:05d}"), "percent": lambda n: int("%d" % n), "template": lambda n: int(string.Template("$n").substitute(n=n)), "regex": lambda n: int(re.match(r"\d+", str(n)).group()), "datetime": lambda n: datetime.timedelta(days=n).days, "numpy ceil": lambda n: int(np.ceil(n / 4)), "numpy log2": lambda n: int(np.log2(n)), "numpy prod": lambda n: int(np.prod([n, 2])), "numpy arange": lambda n: len(np.arange(0, n, 2)), "numpy int": lambda n: int(np.int32(n)), "numpy floor divide": lambda n: int(np.floor_divide(n, 4)), "numpy clip": lambda n: int(np.clip(n, 5, 12)), "numpy round": lambda n: int(np.round(n / 2)), "numpy sqrt": lambda n: int(np.sqrt(n)), "numpy mod": lambda n: int(np.mod(n, 4)), "numpy linspace": lambda n: int(np.linspace(0, n, 5)[2]), "torch ceil": lambda n: int(torch.ceil(torch.tensor(n / 4))), "torch tensor": lambda n: int(torch.tensor([n, 2]).prod()), "torch Size": lambda n: torch.Size([n, 2]).numel(), "torch arange": lambda n: int(torch.arange(n)[-1]), "torch empty": lambda n: torch.empty(n, 2).numel(), "torch zeros shape": lambda n: torch.zeros(n).unfold(0, min(4, n), 2).shape[0], "conv output": lambda n: F.conv1d(torch.zeros(1, 1, n + 3), torch.zeros(1, 1, 3), stride=2).shape[-1], "pool output": lambda n: F.max_pool1d(torch.zeros(1, 1, n + 3), 3, ceil_mode=True).shape[-1], "sym max": lambda n: torch.sym_max(n, 5), "sym int": lambda n: torch.sym_int(n / 4), "sym float": lambda n: int(torch.sym_float(n) / 4), "sym not": lambda n: 2 if torch.sym_not(n > 5) else 3, "sym ite": lambda n: torch.sym_ite(n > 5, 4, 6), "sym sum": lambda n: torch.sym_sum([n, 2, 3]), "sym sqrt": lambda n: int(torch._sym_sqrt(n)),
}
def executed(n):
    scope = {"n": n}
    exec("m = n * 2 + 1", scope)
    return scope["m"]
PLACES = {
    "cut": lambda x, k: x[:, : max(1, k)], "factor": lambda x, k: x * k, "zeros": lambda x, k: torch.zeros(abs(k) % 50 + 1) + x.sum(),
}
for at, (name, fn) in enumerate(S.items()):
    place = list(PLACES)[at % 3]
    row("sizes in python", f"{name}, {place}", lambda x, fn=fn, use=PLACES[place]: use(x, fn(x.shape[1])), X, largest=300)
# fmt: on
