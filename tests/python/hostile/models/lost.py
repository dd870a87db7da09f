"""Numbers that leave Python's integers on their way: through strings, lists, other modules and other types."""

import array
import collections
import decimal
import fractions
import itertools
import json
import math
import operator
import statistics
import struct

import numpy as np
import torch
import torch.nn.functional as F

from ..rows import floats, row

# fmt: off
X = floats(3, 14)

NUMBERS = {
    "str": lambda n: int(str(n)) // 3, "format": lambda n: int(f"{n:05d}") % 7, "bits": lambda n: bin(n).count("1"), "bit_count": lambda n: n.bit_count(), "hex": lambda n: int(hex(n), 16) + 1, "digits": lambda n: len(str(n)), "sum of digits": lambda n: sum(map(int, str(n))), "json": lambda n: json.loads(json.dumps({"n": n}))["n"] - 1, "float of text": lambda n: int(float(f"{n}.5") * 2) % 11, "bytes": lambda n: int.from_bytes(n.to_bytes(4, "big"), "big") // 2, "struct": lambda n: struct.unpack("i", struct.pack("i", n))[0] % 5,
    "np.prod": lambda n: int(np.prod([n, 2])) // 3, "np.ceil": lambda n: int(np.ceil(n / 4)), "np.sqrt": lambda n: int(np.sqrt(n)), "np.int64": lambda n: np.int64(n) // 3, "np.log2": lambda n: int(np.ceil(np.log2(n))), "np.arange": lambda n: len(np.arange(0, n, 3)), "np.minimum": lambda n: int(np.minimum(n, 9)), "np.clip": lambda n: int(np.clip(n, 3, 20)), "np.linspace": lambda n: int(np.linspace(0, n, 5)[3]), "np.floor_divide": lambda n: np.floor_divide(n, 4).item(), "np.round": lambda n: int(np.round(n * 0.3)), "np.mod": lambda n: int(np.mod(-n, 6)), "np.array": lambda n: int(np.array([n, 10]).max()), "np.digitize": lambda n: int(np.digitize(n, [10, 20, 100])),
    "list of a range": lambda n: len(list(range(n))) // 2, "counted": lambda n: sum(1 for _ in range(n)) // 3, "last of a range": lambda n: range(n)[-1] // 2, "len of a range": lambda n: len(range(2, n, 3)), "repeated list": lambda n: len([0] * n) % 5, "repeated text": lambda n: len("ab" * n) % 9, "slice of a list": lambda n: len(list(range(100))[:n]) % 13, "index of a tuple": lambda n: (1, 2, 3, 4, 5, 6, 7)[n % 7], "index of text": lambda n: int("3141592653"[n % 10]), "zip": lambda n: len(list(zip(range(n), range(20), strict=False))), "islice": lambda n: len(list(itertools.islice(range(50), n))), "accumulate": lambda n: list(itertools.accumulate(range(1, n + 1)))[-1] % 17, "product": lambda n: len(list(itertools.product(range(n % 7), repeat=2))), "array": lambda n: array.array("i", [n])[0] - 1, "deque": lambda n: len(collections.deque(range(n), maxlen=9)), "counter": lambda n: collections.Counter([n, n])[n] + n % 3, "set": lambda n: len({k % 5 for k in range(n)}), "dict": lambda n: len(dict.fromkeys(k // 3 for k in range(n))), "enumerate": lambda n: [k for k, _ in enumerate(range(n))][-1] % 8, "generator": lambda n: next(k for k in itertools.count() if k * k >= n), "while": lambda n: halvings(n), "collatz": lambda n: collatz(n), "gcd": lambda n: math.gcd(n, 12), "lcm": lambda n: math.lcm(n, 4) % 30, "factors": lambda n: max(k for k in range(1, n + 1) if n % k == 0 and k * k <= n), "prime": lambda n: next(k for k in range(n, 2 * n + 2) if all(k % d for d in range(2, k))), "isqrt": lambda n: math.isqrt(n), "cbrt": lambda n: round(n ** (1 / 3)), "log2": lambda n: math.ceil(math.log2(n)), "floor of log2": lambda n: int(math.log2(n)), "power of two": lambda n: 2 ** math.ceil(math.log2(n)) - n, "nearest power": lambda n: 2 ** round(math.log2(n)), "log10": lambda n: int(math.log10(n)), "exp": lambda n: int(math.exp(-n / 50) * 20), "pow": lambda n: int(math.pow(n, 1.3)) % 19, "sin": lambda n: int(5 + 4 * math.sin(n)), "fmod": lambda n: int(math.fmod(n, 6)), "hypot": lambda n: int(math.hypot(n, 5)), "copysign": lambda n: int(math.copysign(3, 20 - n)) + 4, "modf": lambda n: int(math.modf(n / 4)[1]), "frexp": lambda n: math.frexp(n)[1], "comb": lambda n: math.comb(n, 2) % 23, "prod": lambda n: math.prod([n, 3]) % 11, "dist": lambda n: int(math.dist([0, n], [5, 0])), "fsum": lambda n: int(math.fsum([n, 0.5])) % 9, "fraction": lambda n: int(fractions.Fraction(n, 3)), "decimal": lambda n: int(decimal.Decimal(n) / 3), "complex": lambda n: int(abs(complex(n, 2))), "statistics": lambda n: int(statistics.mean([n, 4])), "median": lambda n: int(statistics.median([n, 20, 9])), "operator": lambda n: operator.floordiv(operator.index(n), 3), "itemgetter": lambda n: operator.itemgetter(n % 3)([4, 2, 7]), "reduce": lambda n: list(itertools.accumulate([n, 3, 5], operator.mul))[-1] % 13, "or": lambda n: n | 4, "xor": lambda n: n ^ 5, "and": lambda n: n & 6, "invert": lambda n: -(~n), "shift": lambda n: (n << 1) >> 2, "float floor": lambda n: int(n // 2.5), "float mod": lambda n: int(n % 2.5), "round to tens": lambda n: round(n, -1), "round digits": lambda n: int(round(n / 7, 1) * 10) % 12, "divmod of floats": lambda n: int(divmod(n, 3.5)[0]), "is_integer": lambda n: 5 if (n / 4).is_integer() else 2, "as ratio": lambda n: (n / 2).as_integer_ratio()[0] % 9, "conjugate": lambda n: n.conjugate() // 2, "numerator": lambda n: n.numerator // 2, "bool": lambda n: 3 + bool(n % 4), "int of bool": lambda n: int(n > 30) * 4 + 1, "sorted": lambda n: sorted([n, 9, 21])[0], "min with key": lambda n: min((4, 9, 30), key=lambda k: abs(k - n)), "max of text": lambda n: len(max("a" * n, "b")), "any": lambda n: 2 + any(n == k for k in (16, 21, 64)), "sum of flags": lambda n: sum(n > k for k in (5, 10, 20, 40, 80)), "try": lambda n: tried(n), "walrus": lambda n: m if (m := n // 3) > 5 else 2, "chained": lambda n: 7 if 10 < n < 30 else 3, "ternary": lambda n: n // 2 if n % 3 else n // 3, "lambda": lambda n: (lambda k: k // 4)(n), "default": lambda n: defaulted(n), "closure": lambda n: closed(n)(2), "global table": lambda n: TABLE.get(n, 1), "global list": lambda n: LIST[min(n // 20, len(LIST) - 1)], "hash": lambda n: hash(n) % 5, "id of a set": lambda n: 4 if n in SOME else 2, "match": lambda n: matched(n), "type": lambda n: 3 if type(n) is int else n // 2, "isinstance": lambda n: n // 2 if isinstance(n, int) else 1, "tensor and back": lambda n: torch.tensor(n).add(1).item() // 2, "tensor max": lambda n: int(torch.tensor([n, 10]).max()), "arange and back": lambda n: int(torch.arange(n)[-1]) // 2, "linspace and back": lambda n: int(torch.linspace(0, n, 4)[2]), "sqrt of a tensor": lambda n: int(torch.tensor(float(n)).sqrt()), "sum of a tensor": lambda n: int(torch.ones(n).sum()) // 3, "size of a tensor": lambda n: torch.ones(n, 2).numel() // 3, "shape of a slice": lambda n: torch.ones(n)[::3].shape[0], "shape of a pool": lambda n: F.max_pool1d(torch.ones(1, 1, n), 3, 2, 1).shape[-1], "Size.numel": lambda n: torch.Size([n, 2]).numel() // 3, "Size plus": lambda n: (torch.Size([n]) + torch.Size([3]))[0] // 2, "broadcast_shapes": lambda n: torch.broadcast_shapes((n, 1), (3,))[0] // 2,
}
PLACES = {
    "cut": lambda x, k: x[:, : max(1, k)], "pad": lambda x, k: F.pad(x, (0, abs(k) % 50)), "scale": lambda x, k: x * k, "choice": lambda x, k: x.cos() if k % 2 else x.sin(),
}
for (name, number), place in itertools.product(NUMBERS.items(), PLACES):
    # One place for each, in turn, and two for those of NumPy.
    at = list(NUMBERS).index(name) + list(PLACES).index(place)
    if at % 4 == 0 or (name.startswith("np.") and at % 2 == 0):
        row("lost", f"{name}, {place}", lambda x, number=number, place=place: PLACES[place](x, number(x.shape[1])), X, largest=300)

TABLE, LIST, SOME = {14: 3, 16: 5, 100: 2}, [2, 5, 3, 7], {14, 15, 33, 128}


def halvings(n):
    k = 0
    while n > 1:
        n //= 2
        k += 1
    return k


def collatz(n):
    k = 0
    while n != 1 and k < 40:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k


def tried(n):
    try:
        return [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9][n]
    except IndexError:
        return 2


def defaulted(n, k=3):
    return n // k


def closed(n):
    return lambda k: n // k + k


def matched(n):
    match n:
        case 14 | 15:
            return 3
        case _ if n > 50:
            return 5
        case _:
            return 2


def doubled(n):
    k = 1
    for _ in range(n % 7):
        k = k * 2 + 1
    return k


def halved(n):
    while n > 32:
        n //= 2
    return n


def window(x):
    k = doubled(x.shape[1])
    return x.unfold(1, min(1 + (k if k < 6 else 3), x.shape[1]), 1).sum(-1)


def stepped(x):
    h = torch.zeros(x.shape[0])
    for t in range(0, x.shape[1], 3 + min(halved(x.shape[1]), 6)):
        h = h * 0.5 + x[:, t]
    return h


def pooled(x, y):
    sizes = [int(y.shape[1] / 4), {5: 3, 8: 5}.get(x.shape[1], x.shape[1]), 48]
    return F.adaptive_avg_pool1d(x, 1 + sizes[sizes.index(max(sizes))] % 12) + y.sum()


TENSORS = {
    "sqrt of a 0-d tensor": lambda x: x[:, : int(torch.tensor(float(x.shape[1])).sqrt())], "parity of a root": lambda x: x.cos() if int(torch.tensor(float(x.shape[1])).sqrt()) % 2 else x.sin(), "ceil of log2": lambda x: F.pad(x, (0, 2 ** int(torch.tensor(x.shape[1]).float().log2().ceil()) - x.shape[1])), "a third, rounded up": lambda x: x[:, : (torch.tensor(x.shape[1]) / 3).ceil().long().item()], "median of a count": lambda x: x * torch.ones(x.shape[1]).cumsum(0).median().item(), "sum of a window": lambda x: x * torch.hann_window(x.shape[1]).sum().item(), "branch on the last": lambda x: x.cos() if int(torch.arange(x.shape[1])[-1]) > 20 else x.sin(), "branch on a root": lambda x: x.cos() if torch.tensor(float(x.shape[1])).sqrt() > 5 else x.sin(), "branch on a product": lambda x: x.cos() if int(torch.tensor(x.shape).prod()) > 60 else x.sin(), "branch on a mask": lambda x: x * 2 if torch.ones(x.shape[1], x.shape[1]).tril().sum(1).max() > 20 else x,
}
for name, fn in TENSORS.items():
    row("lost", f"tensors: {name}", fn, X, largest=300)

row("lost", "as often as a remainder", window, floats(3, 8))
row("lost", "the sum of a range of a remainder", lambda x, y: torch.tensor([x.shape[1] if sum(range(y.shape[1] % 100)) == 21 else -(-x.shape[1] // 2)]) + y.sum(), floats(2, 8), floats(2, 11))
row("lost", "steps by what halving leaves", stepped, floats(2, 33))
row("lost", "the largest of three", pooled, floats(1, 8), floats(2, 5))
# fmt: on
