"""Writes fuzz/corpus/read_pt2/*.pt2: small programs that together reach most families of lowerings.

python fuzz/make_corpus.py. Stack traces and examples are left out: they are most of the bytes and nothing reads them.
"""

import json
import zipfile
from pathlib import Path

import torch
from torch._higher_order_ops import scan, while_loop
from torch.nn import functional as F

HERE = Path(__file__).parent / "corpus" / "read_pt2"


def views(x):
    y = x.clone()
    y.permute(2, 0, 1)[0] = 1
    y.transpose(0, 1)[1:].mul_(2)
    a, b = y.split([1, 3], dim=2)
    a.add_(1)
    b.select(1, 0).zero_()
    y.unbind(0)[0].fill_(3)
    y.view(-1)[2:5] = 0
    y.diagonal(0, 0, 1).add_(1)
    return y, y.unsqueeze(1).squeeze(1), y.flatten(1), y.movedim(0, 2), y.unflatten(2, (2, 2)), y.swapaxes(0, 1)


def scatters(x, index):
    y = x.scatter(1, index, 1.0).scatter_add(0, index, x).index_put((index[:, 0],), x[0])
    y = y.index_add(0, index[:, 0], x[:2]).masked_fill(x > 1, 0.0)
    z = torch.slice_scatter(y, x[:, 1:3], 1, 1, 3)
    return (
        torch.select_scatter(z, x[0], 0, 1),
        x.gather(1, index),
        x.index_select(1, index[0]),
        x[index[:, 0]],
        x.take(index),
    )


def orders(x):
    return (
        *x.topk(2, 1),
        *x.sort(0, descending=True),
        x.cummax(0)[0],
        *x.kthvalue(2, 1),
        *x.max(1),
        x.argmin(0),
        *x.mode(1),
    )


def reductions(x):
    return (
        x.sum((0, 2), True), x.mean(1), x.var(2), x.std((0, 1)), x.amax((1, 2)), x.prod(1), x.logsumexp((1,)),
        x.norm(2, 1), x.cumsum(1), x.any(0), x.all(), x.softmax(2), x.log_softmax(1), x.argmax(), x.unfold(2, 2, 1),
        x.roll((1, 2), (0, 2)), x.flip((0, 1)), x.cumprod(0),
    )  # fmt: skip


def pads(x):
    y = F.pad(x, (1, 2, 3, 0), value=2.0)
    z = F.pad(F.pad(y, (1, 1, 1, 1), "reflect"), (0, 2, 1, 0), "replicate")
    return z, F.pad(x, (1, 1, 0, 1), "circular"), x.repeat(1, 2, 1, 1), x.tile(2, 1), x.expand(2, -1, -1, -1)


def pictures(x, grid, theta):
    y = torch.ops.aten.grid_sampler_2d(x, grid, 0, 1, True)
    z = F.interpolate(x, scale_factor=2.0, mode="bilinear") + F.interpolate(x, size=(8, 8), mode="nearest")
    return (
        y, z, F.affine_grid(theta, (2, 4, 3, 3), False), F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2),
        F.avg_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True), F.adaptive_avg_pool2d(x, 2), F.unfold(x, 2),
    )  # fmt: skip


def numbers(x, n):
    y = torch.where(x > 0, x, -x).clamp(0, 2) ** 2 + torch.arange(x.shape[1]) * x.shape[0] / 3
    z = torch.einsum("ij,kj->ik", x, y) @ y + torch.outer(x[:, 0], x[0])
    return (
        z,
        torch.cat([x, y], 1),
        torch.stack([x, y], 1),
        x.to(torch.int64) // 2 % 3,
        n[x.long().abs() % 3],
        torch.tril(y),
        y.T,
    )


def attention(q, mask):
    h = F.scaled_dot_product_attention(q, q, q, attn_mask=mask, scale=0.5)
    h = F.layer_norm(h, (4,)) + F.group_norm(q, 2) + F.gelu(q) + F.rms_norm(q, (4,))
    return h, torch.baddbmm(h[0], h[0], h[0].transpose(1, 2) @ h[0])


def spectra(x):
    f = torch.fft.rfft(x, dim=1)
    return torch.fft.irfft(f * f.conj(), 4, dim=1), torch.view_as_real(f), f.abs(), torch.fft.fft(x, dim=0).real


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.same = torch.nn.Conv2d(2, 4, 3, padding="same")
        self.up = torch.nn.ConvTranspose2d(4, 2, 2, stride=2)
        self.norm = torch.nn.BatchNorm2d(2)
        self.conv = torch.nn.Conv1d(4, 3, 3, stride=2, padding=1, groups=1)
        self.embedding = torch.nn.Embedding(5, 4, padding_idx=0)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, ids):
        y = self.norm(self.up(self.same(x)))
        return y, self.conv(self.linear(self.embedding(ids)).transpose(1, 2))


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True)
        self.gru = torch.nn.GRU(3, 2)

    def forward(self, x):
        return *self.lstm(x)[0].chunk(2, -1), self.gru(x)[0]


class Control(torch.nn.Module):
    def forward(self, x, steps):
        y = torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x - 1, (x,))
        n, y = while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2), (steps, y))
        last, all_of = scan(lambda c, s: (c + s, c * s), y[0], x, dim=0)
        return n, y, last, all_of


class Written(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(2))
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4)[:, 1:])

    def forward(self, x, by):
        self.calls.add_(1)
        self.table[0] = 2
        count = (x > 0).sum().item()
        torch._check(count >= 1)
        torch._check(count <= x.shape[0])
        return x.nonzero(), x * by["scale"] * self.calls.sum(), x[:count] + self.table.sum()


class Called(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def programs():
    batch = torch.export.Dim.AUTO
    random, index = torch.rand, torch.tensor([[0, 1], [2, 0]])
    yield "views", Called(views), (random(3, 4, 4),), (({0: batch},),)
    yield "scatters", Called(scatters), (random(3, 4), index), None
    yield "orders", Called(orders), (random(4, 3),), (({0: batch},),)
    yield "reductions", Called(reductions), (random(3, 4, 5),), (({0: batch},),)
    yield "pads", Called(pads), (random(1, 2, 4, 4),), None
    yield "pictures", Called(pictures), (random(2, 4, 4, 4), random(2, 3, 3, 2), random(2, 2, 3)), None
    yield "numbers", Called(numbers), (random(3, 4), random(3)), (({0: batch}, None),)
    yield "attention", Called(attention), (random(2, 2, 3, 4), random(3, 3)), (({0: batch}, None),)
    yield "spectra", Called(spectra), (random(3, 4),), None
    yield "layers", Layers(), (random(2, 2, 4, 4), torch.tensor([[1, 2, 3], [4, 0, 1]])), ({0: batch}, None)
    yield "recurrent", Recurrent(), (random(2, 3, 3),), None
    yield "control", Control(), (random(5, 3), torch.tensor(3)), None
    yield "written", Written(), (random(4), {"scale": random(4)}), ({0: batch}, {"scale": {0: batch}})


def slim(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            if "sample_inputs" in name or name.endswith(("serialization_id", ".data/version")):
                continue
            if name.endswith("models/model.json"):
                content = json.dumps(bare(json.loads(content)), separators=(",", ":")).encode()
            archive.writestr(zipfile.ZipInfo(f"p/{name.split('/', 1)[1]}"), content)


def bare(value):
    if isinstance(value, dict):
        return {key: {} if key == "metadata" else bare(item) for key, item in value.items()}
    return [bare(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    for name, model, args, shapes in programs():
        torch.manual_seed(0)
        program = torch.export.export(model.eval(), args, dynamic_shapes=shapes)
        if name == "spectra":  # torch.fft comes as operators that PyTorch takes apart
            program = program.run_decompositions()
        torch.export.save(program, HERE / f"{name}.pt2")
        slim(HERE / f"{name}.pt2")
        print(f"{name}: {(HERE / f'{name}.pt2').stat().st_size} bytes")


if __name__ == "__main__":
    main()
