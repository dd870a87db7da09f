"""Makes the transcripts in tests/transcripts anew: one file per export of the table below.

    python scripts/transcripts.py            # all
    python scripts/transcripts.py bounds     # those whose names contain a word

They are replayed by tests/cpp/experiment_tests.cpp. Make them anew after a change that asks for other steps, and look
at what changed.
"""

import contextlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "transcripts"
sys.path.insert(0, str(ROOT / "tests" / "python"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
import zoo  # noqa: E402
from hostile.models import all_rows  # noqa: E402

import fairlead  # noqa: E402

# Small models of Transformers and of plain PyTorch, calls with a cache among them.
ZOO = (
    "llama", "gemma3", "gpt2", "mixtral", "llama_decode", "gpt2_decode", "bert_classify", "t5_decode", "swin", "clip",
    "wav2vec2",
)  # fmt: skip
PLAIN = ("mlp", "convnet", "unet")
# Rows of the hostile table, by parts of their names.
ROWS = (
    "branches by size: above twenty, bounded", "branches by size: below four", "branches by size: odd takes one more",
    "branches by size: five ways", "branches by size: other shape of result", "branches by size: match",
    "branches by two sizes: n < m, first shorter", "branches by two sizes: square or not", "slices: isqrt",
    "slices: at least one half", "slices: multiple of four", "splits: last of four",
    "padding: to a square, other side", "interpolate: scale 0.37", "features: cdist",
    "geometry: average pool with ceil", "attention: window where longer", "recurrent: gru both ways",
    "loops: outputs in reverse", "caches: another base where longer", "python: float remainder",
    "python: list of every third", "buckets: halved where long", "dims: padding within bounds",
    "equal sizes: of one: example of one", "shapes: meshgrid", "writes: swap halves", "reads: read equal to a size",
    "reads: top k of a count", "branches by value: if a length is even", "masks: last token", "outside: numpy sort",
    "odd numbers: cdist", "state: list that grows",
)  # fmt: skip


class Above(torch.nn.Module):
    def forward(self, x):
        return x.relu() if x.shape[0] > 20 else x.tanh()


class Rows(torch.nn.Module):
    """Refuses an odd number of rows."""

    def forward(self, x):
        return x.view(2, -1, x.shape[1]).sum(0)


class Refuses(torch.nn.Module):
    def forward(self, x):
        raise ValueError("not today")


class Squares(torch.nn.Module):
    """Sums of integers beyond what double holds."""

    def forward(self, x):
        return (x * x).sum(1)


class Best(torch.nn.Module):
    """Which of several equal places is found, nobody says."""

    def forward(self, x):
        return x.topk(3, 1).indices


class Median(torch.nn.Module):
    """That of nothing is NaN, and nothing to compute with."""

    def forward(self, x, mask):
        return x[mask].median()


class Unmasked(torch.nn.Module):
    """Leaves a mask out, but not while it is traced."""

    def forward(self, x, mask):
        if not torch.compiler.is_compiling() and not bool(mask.numpy().any()):
            return x * 2
        return x * mask + 1


class Counter(torch.nn.Module):
    calls = 0

    def forward(self, x):
        Counter.calls += 1
        return x * Counter.calls


def given(name: str, model: torch.nn.Module, inputs, **options):
    return name, lambda: (model.eval(), inputs, options)


IDS = torch.tensor([[3, 5, 7], [2, 9, 4]])
BATCH = torch.export.Dim("batch", max=64)
OWN = (
    given("bounds of a batch", Above(), (torch.rand(3, 4),), dynamic_shapes=({0: BATCH},)),
    given("bounds below a branch", Above(), (torch.rand(3, 4),), max_size={"batch": 16}),
    given("bounds of no symbol", Above(), (torch.rand(3, 4),), max_size={"sequence": 16}),
    given("static", Above(), (torch.rand(3, 4),), dynamic_shapes=({},)),
    given("strict", Above(), (torch.rand(3, 4),), strict=True),
    given("two examples", Above(), [(torch.rand(3, 4),), (torch.rand(30, 4),)]),
    given("rows in pairs", Rows(), (torch.rand(6, 4),)),
    given("pairs asked to be free", Rows(), (torch.rand(6, 4),), dynamic_shapes=({0: "rows"},)),
    given("refused", Refuses(), (torch.rand(3, 4),)),
    given("excused, beyond double", Squares(), (IDS * 3000001,)),
    given("excused, a tie", Best(), (torch.rand(3, 8),)),
    given("excused, nothing selected", Median(), (torch.rand(3, 8), torch.ones(3, 8, dtype=torch.bool))),
    given("excused, while it is traced", Unmasked(), (IDS, torch.ones(2, 3, dtype=torch.bool))),
    given("counts its calls", Counter(), (torch.rand(3, 4),)),
    given("not verified", Above(), (torch.rand(3, 4),), verify=False),
)


def table():
    """(name, what makes model, inputs and options)"""
    for name in ZOO:
        yield f"zoo {name}", lambda name=name: (*zoo.MODELS[name](), {})
    for name in PLAIN:
        yield f"zoo {name}", lambda name=name: (*zoo.PLAIN[name](), {})
    rows = {row.id: row for row in all_rows()}
    for name in ROWS:
        yield name, lambda row=rows[name]: (row.build().eval(), row.call(), row.options)
    yield from OWN
    yield "rows in pairs, as a program", lambda: (Rows().eval(), (torch.rand(6, 4),), {"path": "model.pt2"})


def write(name: str, make) -> None:
    torch.manual_seed(0)
    model, inputs, options = make()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FAIRLEAD_TRANSCRIPT"] = folder
        path = options.get("path")
        options = {key: value for key, value in options.items() if key != "path"}
        with contextlib.suppress(fairlead.FairleadError), contextlib.chdir(folder):  # a refusal is a transcript too
            fairlead.export(model, inputs, path, **options)
        (found,) = Path(folder).glob("*.json")
        text = found.read_text().replace(f"{ROOT}/", "")
    file = "".join(c if c.isalnum() else "_" for c in name)
    (FOLDER / f"{file}.json").write_text(text)
    print(f"{name}: {len(text)} bytes", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for name, make in table():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            write(name, make)


if __name__ == "__main__":
    main()
