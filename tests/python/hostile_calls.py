"""Calls of the command line that are wrong in other ways than by their file: where they write, what they are told, the
process they run in, files that change meanwhile, and code of the user's own that misbehaves. Each is tried by
try_files.py as the files are."""
# ruff: noqa: E501 - a model that misbehaves is one line

from __future__ import annotations

import os
import resource
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOBODY = 65534
PLAIN = "import torch\ndef make():\n    return torch.nn.ReLU().eval(), (torch.rand(2, 2),)\n"


@dataclass
class Call:
    """The words of a command, what its process does first."""

    words: list[str]
    before: Callable[[], Any] = lambda: None
    own_words: bool = False  # the user's own code prints
    silent: bool = False  # nobody can be told
    env: dict[str, str | None] = field(default_factory=dict)


CALLS: dict[str, Callable[[Path], Call]] = {}


def call(name: str, make: Callable[[Path], Call]) -> None:
    assert name not in CALLS, name
    CALLS[name] = make


def plain(root: Path, text: str = PLAIN) -> str:
    (root / "given" / "model.py").write_text(text)
    return f"{root}/given/model.py:make"


def as_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


SILENT = ("no standard error", "no streams", "a full standard error", "a standard error that nobody reads",
          "files of nothing")  # fmt: skip
# ---- the process ---------------------------------------------------------------------------------------------------


def in_process(words: str, before: Callable[[], Any] = lambda: None, **env: str | None) -> None:
    """An export and an inspection in such a process."""
    call(f"process: {words}", lambda root: Call(
        ["export", plain(root), f"{root}/x.onnx"], before, env=env, silent=words in SILENT))  # fmt: skip
    call(f"process: {words}, inspect", lambda root: Call(
        ["inspect", str(made_onnx(root))], before, env=env, silent=words in SILENT))  # fmt: skip


def made_onnx(root: Path) -> Path:
    import onnx

    value = onnx.helper.make_tensor_value_info("x", 1, ["batch"])
    out = onnx.helper.make_tensor_value_info("y", 1, ["batch"])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [value], [out])
    path = root / "given" / "made.onnx"
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)],
                                            ir_version=9).SerializeToString())  # fmt: skip
    return path


def closed(*numbers: int) -> Callable[[], None]:
    return lambda: [os.close(n) for n in numbers] and None


def to(number: int, name: str) -> Callable[[], None]:
    return lambda: os.dup2(os.open(name, os.O_WRONLY), number) and None


def limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def gone() -> None:
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")


def unread(number: int) -> Callable[[], None]:
    def change() -> None:
        reads, writes = os.pipe()
        os.close(reads)
        os.dup2(writes, number)

    return change


for words, before in (
    ("no standard input", closed(0)), ("no standard output", closed(1)), ("no standard error", closed(2)),
    ("no streams", closed(0, 1, 2)), ("a full standard output", to(1, "/dev/full")),
    ("a full standard error", to(2, "/dev/full")), ("a standard output that nobody reads", unread(1)),
    ("a standard error that nobody reads", unread(2)), ("a folder that is gone", gone),
    ("24 files", limited(resource.RLIMIT_NOFILE, 24)),
    ("a stack of 64 kB", limited(resource.RLIMIT_STACK, 1 << 16)), ("an umask of everything", lambda: os.umask(0o777)),
    ("an umask of nothing", lambda: os.umask(0)), ("files of 100 bytes", limited(resource.RLIMIT_FSIZE, 100)),
    ("files of nothing", limited(resource.RLIMIT_FSIZE, 0)),
    ("memory that cannot be locked", limited(resource.RLIMIT_MEMLOCK, 0)),
):  # fmt: skip
    in_process(words, before)
for words, env in (
    ("no TERM", {"TERM": None}), ("a TERM that is none", {"TERM": "\x1b[2J"}), ("a dumb TERM", {"TERM": "dumb"}),
    ("the locale C", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
    ("a locale that is none", {"LC_ALL": "xx_YY.nothing"}), ("no HOME", {"HOME": None, "USER": None, "LOGNAME": None}),
    ("a HOME that is a device", {"HOME": "/dev/null"}), ("an empty HOME", {"HOME": ""}),
    ("a TMPDIR that is none", {"TMPDIR": "/nothing"}), ("a TMPDIR that is a device", {"TMPDIR": "/dev/null"}),
    ("COLUMNS of 0", {"COLUMNS": "0"}), ("COLUMNS of -5", {"COLUMNS": "-5"}), ("COLUMNS of 10^9", {"COLUMNS": "9" * 9}),
    ("COLUMNS of words", {"COLUMNS": "\x1b[2J"}), ("no PATH", {"PATH": None}),
    ("no environment", dict.fromkeys(("HOME", "PATH", "TERM", "LANG", "USER", "SHELL", "TMPDIR"))),
    ("memory of words", {"FAIRLEAD_MEMORY": "\x1b[2J"}), ("memory of -1", {"FAIRLEAD_MEMORY": "-1"}),
    ("memory of nan", {"FAIRLEAD_MEMORY": "nan"}), ("memory of 1e400", {"FAIRLEAD_MEMORY": "1e400"}),
    ("transcripts in a device", {"FAIRLEAD_TRANSCRIPT": "/dev/null"}),
    ("transcripts where nothing can be", {"FAIRLEAD_TRANSCRIPT": "/proc/nothing"}),
    ("HF_HOME in a device", {"HF_HOME": "/dev/null", "HF_HUB_CACHE": "/dev/full"}),
):  # fmt: skip
    in_process(words, **env)
in_process("a user without a name", lambda: (os.setgroups([]), os.setgid(54321), os.setuid(54321)))
call("process: a closed terminal that shows progress", lambda root: Call(
    ["export", plain(root), f"{root}/x.onnx"], terminal_that_closes))  # fmt: skip


def terminal_that_closes() -> None:
    above, below = os.openpty()
    os.dup2(below, 2)
    os.close(above)
    os.close(below)


# ---- where it is written -------------------------------------------------------------------------------------------


def target(words: str, prepare: Callable[[Path], Any], before: Callable[[], Any] = lambda: None) -> None:
    """`prepare` gives the path, as text, below the folder `there`, which the command finds as it leaves it."""

    def make(command: str) -> Callable[[Path], Call]:
        def made(root: Path) -> Call:
            there = root / "given" / "there"
            there.mkdir()
            (root / "given").chmod(0o755)
            os.chmod(root, 0o777)
            os.chmod(root / "at", 0o777)
            path = str(prepare(there))
            if command == "export":
                return Call(["export", plain(root), path], before)
            if command == "report":
                return Call(["report", str(made_onnx(root)), "-o", path], before)
            if command == "folder":
                return Call(["export", str(checkpoint()), path, "--no-verify"], before)
            if command == "pt2":
                return Call(["export", plain(root), path, "--format", "pt2"], before)
            if command == "sweep":
                (root / "given" / "list.txt").write_text("/nothing\n")
                return Call(["sweep", str(root / "given" / "list.txt"), "-o", path], before)
            return Call(["convert", str(Path(__file__).parent.parent / "golden" / "mlp.pt2"), path], before)

        return made

    for command in ("export", "report", "folder", "convert", "pt2", "sweep"):
        call(f"target: {words}, {command}", make(command))


def checkpoint() -> Path:
    from hostile_checkpoints import made

    folder = made("bert")
    folder.parent.chmod(0o755)
    return folder


def with_file(there: Path, name: str) -> Path:
    (there / name).write_text("mine")
    return there / name


def with_folder(there: Path, name: str) -> Path:
    (there / name).mkdir()
    (there / name / "mine").write_text("mine")
    return there / name


def with_link(there: Path, name: str, to: str) -> Path:
    (there / name).symlink_to(to)
    return there / name


def with_socket(there: Path) -> Path:
    here = os.getcwd()
    os.chdir(there)
    socket.socket(socket.AF_UNIX).bind("s.onnx")
    os.chdir(here)
    return there / "s.onnx"


def with_pipe(there: Path) -> Path:
    os.mkfifo(there / "p.onnx")
    return there / "p.onnx"


def read_only(there: Path) -> Path:
    there.chmod(0o555)
    return there / "x.onnx"


def writable(there: Path) -> Path:
    there.chmod(0o777)
    return there / "x.onnx"


def others_folder(there: Path) -> Path:
    """A folder of another user's, in one that everybody may write."""
    there.chmod(0o777)
    (there / "x.onnx").mkdir(mode=0o700)
    return there / "x.onnx"


for words, prepare, before in (
    ("a folder that is there", lambda t: with_folder(t, "x.onnx"), None), ("a pipe", with_pipe, None),
    ("a socket", with_socket, None), ("a link to itself", lambda t: with_link(t, "x.onnx", "x.onnx"), None),
    ("a link to nothing", lambda t: with_link(t, "x.onnx", "nothing/nothing"), None),
    ("a link to a device", lambda t: with_link(t, "x.onnx", "/dev/full"), None),
    ("a link to a folder", lambda t: with_link(t, "x.onnx", str(with_folder(t, "f"))), None),
    ("a device", lambda t: "/dev/full", None), ("a device that takes all", lambda t: "/dev/null", None),
    ("standard output", lambda t: "/dev/stdout", None), ("of the system", lambda t: "/proc/x.onnx", None),
    ("the memory", lambda t: "/proc/self/mem", None), ("below a file", lambda t: with_file(t, "f") / "x.onnx", None),
    ("in a file as a folder", lambda t: f"{with_file(t, 'x.onnx')}/", None), ("nothing", lambda t: "", None),
    ("a dot", lambda t: ".", None), ("two dots", lambda t: f"{t}/..", None), ("a slash", lambda t: "/", as_nobody),
    ("a slash behind", lambda t: f"{t}/x.onnx/", None), ("a long name", lambda t: t / ("x" * 250 + ".onnx"), None),
    ("the longest name", lambda t: t / ("x" * 242 + ".onnx"), None), ("a long path", lambda t: f"{t}/" + "x/" * 3000,
     None),
    ("two lines", lambda t: t / "a\nerror: b.onnx", None), ("what moves the cursor", lambda t: t / "\x1b[2J\u202e.onnx",
     None),
    ("no text", lambda t: f"{t}/\udcff.onnx", None), ("blanks", lambda t: t / "   ", None),
    ("a tilde", lambda t: "~/../nothing/x.onnx", None), ("a URL", lambda t: "https://a/b.onnx", None),
    ("read only", read_only, as_nobody), ("somebody else's", others_folder, as_nobody),
    ("allowed", writable, as_nobody), ("what a shell would do", lambda t: t / "$(touch x);`id`|.onnx", None),
    ("another suffix", lambda t: t / "x.pte.pt2.onnx.exe", None), ("a suffix alone", lambda t: t / ".onnx", None),
    ("a staging folder's name", lambda t: t / ".x.onnx.fairlead-AAAAAA", None),
):  # fmt: skip
    target(words, prepare, before or (lambda: None))

# ---- code of the user's own ----------------------------------------------------------------------------------------

HEAD = "import os, sys, torch\nfrom torch import nn\nX = torch.rand(2, 3)\n"
MAKES = {
    "that is no Python": "def make(:\n",
    "with a zero": "x = 1\0\n",
    "of other bytes": b"\xff\xfe\xfd\n",
    "in an encoding that is none": b"# -*- coding: nothing -*-\n",
    "that is empty": "",
    "that raises": "raise ValueError('\\x1b[2J' * 3)\n",
    "that ends Python": "import sys\nsys.exit(7)\n",
    "that ends Python with words": "import sys\nsys.exit('\\x1b[2J words')\n",
    "whose make is no function": "make = 7\n",
    "whose make gives nothing": "def make(): pass\n",
    "whose make gives one": "def make(): return 1\n",
    "whose make gives three": HEAD + "def make(): return nn.ReLU().eval(), (X,), 3\n",
    "whose make is a generator": HEAD + "def make():\n    yield nn.ReLU().eval()\n    yield (X,)\n",
    "whose make is a coroutine": HEAD + "async def make(): return nn.ReLU().eval(), (X,)\n",
    "whose make is a class": HEAD + "class make(nn.Module):\n    def forward(self, x): return x\n",
    "whose make wants arguments": HEAD + "def make(a, b): return nn.ReLU().eval(), (X,)\n",
    "whose make calls itself": "def make(): return make()\n",
    "whose make raises a BaseException": "class B(BaseException): pass\ndef make(): raise B('x')\n",
    "whose make raises StopIteration": "def make(): raise StopIteration\n",
    "whose make raises GeneratorExit": "def make(): raise GeneratorExit\n",
    "whose make raises what has no text": "class E(Exception):\n    def __str__(self): raise ValueError\ndef make(): raise E\n",
    "whose make raises what has text that is none": "class E(Exception):\n    def __str__(self): return 7\ndef make(): raise E\n",
    "whose make raises a megabyte": "def make(): raise ValueError('x\\n' * 1000000)\n",
    "whose make raises surrogates": "def make(): raise ValueError('\\ud800')\n",
    "whose make raises EOFError": "def make(): raise EOFError\n",
    "whose make raises OSError": "def make(): raise OSError(5, 'a\\nb', 'c\\x1b')\n",
    "whose make raises MemoryError": "def make(): raise MemoryError\n",
    "whose make raises an ImportError": "def make(): import nothing_of_the_kind\n",
    "whose make raises an exit of click": "import click\ndef make(): raise click.exceptions.Exit(0)\n",
    "whose make raises an error of click": "import click\ndef make(): raise click.UsageError('\\x1b[2J')\n",
    "whose make aborts": "import click\ndef make(): raise click.Abort\n",
    "whose make warns as errors": HEAD + "import warnings\nwarnings.simplefilter('error')\ndef make(): return nn.Linear(3, 3).eval(), (X,)\n",
    "whose make removes itself": HEAD + "os.remove(__file__)\ndef make(): return nn.ReLU().eval(), (X,)\n",
    "whose make goes elsewhere": HEAD + "os.chdir('/')\ndef make(): return nn.ReLU().eval(), (X,)\n",
    "whose make closes the streams": HEAD + "def make():\n    os.close(1)\n    os.close(2)\n    return nn.ReLU().eval(), (X,)\n",
    "whose make takes the streams": HEAD + "def make():\n    sys.stdout = sys.stderr = None\n    return nn.ReLU().eval(), (X,)\n",
    "whose make asks": HEAD + "def make():\n    input('?')\n    return nn.ReLU().eval(), (X,)\n",
    "whose name is a module's": HEAD + "sys.modules['json'] = None\ndef make(): return nn.ReLU().eval(), (X,)\n",
}  # fmt: skip
for words, text in MAKES.items():

    def make(root: Path, text: Any = text, words: str = words) -> Call:
        path = root / "given" / "model.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        return Call(
            ["export", f"{path}:make", f"{root}/x.onnx"],
            own_words="asks" in words,
            silent="asks" in words or "streams" in words,
        )

    call(f"script: {words}", make)

FORWARDS = {
    "that gives a text": "return 'x'",
    "that gives itself": "return self",
    "that gives a list in itself": "a = []; a.append(a); a.append(x); return a",
    "that gives a tree of 5,000 levels": "a = x\n        for _ in range(5000): a = [a]\n        return a",
    "that gives 5,000 tensors": "return [x] * 5_000",
    "that gives a dict with odd names": "return {'\\x1b[2J': x, '\\ud800': x, '': x, '\\n': x, 7: x, (1, 2): x, None: x}",
    "that raises once in two": "self.n = getattr(self, 'n', 0) + 1\n        if self.n % 2 == 0: raise ValueError('\\x1b[2J')\n        return x + 1",
    "that raises from the second call": "self.n = getattr(self, 'n', 0) + 1\n        if self.n > 1: raise ValueError('a\\nb' * 1000)\n        return x + 1",
    "that ends Python": "sys.exit(0)",
    "that ends Python at the third call": "self.n = getattr(self, 'n', 0) + 1\n        if self.n > 2: sys.exit(3)\n        return x + 1",
    "that stops the iteration": "raise StopIteration",
    "that leaves generators": "raise GeneratorExit",
    "that calls itself": "return self(x)",
    "that is a coroutine": None,
    "that yields": "yield x",
    "that draws": "return x + torch.rand(2, 3)",
    "that counts": "self.n = getattr(self, 'n', 0) + 1\n        return x * self.n",
    "that writes its input": "x.add_(1); return x",
    "that resizes its input": "x.resize_(5, 7); return x",
    "that changes the weight": "self.w.data.add_(1); return x * self.w",
    "that removes the weight": "w = self.w; del self.w; return x * w",
    "that adds a weight": "self.register_parameter(f'p{len(list(self.parameters()))}', nn.Parameter(x[:1].clone())); return x + self.w",
    "that replaces a function": "nn.functional.relu = None; return x * 2",
    "that forks": "p = os.fork()\n        if p == 0: os._exit(0)\n        os.waitpid(p, 0); return x + 1",
    "that starts a thread": "import threading; threading.Thread(target=lambda: torch.rand(3) + 1).start(); return x + 1",
    "that changes the default dtype": "torch.set_default_dtype(torch.float64); return x + torch.ones(3)",
    "that turns gradients on": "torch.set_grad_enabled(True); return x * self.w",
    "that makes a terabyte": "return x + torch.zeros(1 << 38).sum()",
    "that makes an expanded exabyte": "return torch.zeros(1).expand(1 << 60)",
    "that gives a meta tensor": "return x.to('meta')",
    "that gives a sparse tensor": "return x.to_sparse()",
    "that gives complex numbers": "return torch.fft.fft(x)",
    "that gives a tensor without storage": "return torch.empty(0, 3) + x[:0]",
    "that runs itself compiled": "return torch.compile(lambda y: y + 1, backend='eager')(x)",
    "that exports": "import fairlead; fairlead.export(nn.ReLU().eval(), (X,), os.devnull + '/x.onnx'); return x",
    "that closes every file": "os.closerange(3, 200); return x + 1",
    "that reads the values": "return x * float(x.sum()) if bool((x > 0.5).all()) else x",
    "whose error has no text": "\n        class E(Exception):\n            def __str__(self): raise KeyError\n        raise E",
    "whose error is a BaseException": "\n        class B(BaseException): pass\n        raise B('\\x1b[2J')",
    "that prints": "print('\\x1b[2J'); return x + 1",
    "of a subclass of tensors": "return x.as_subclass(type('T\\x1b[2J', (torch.Tensor,), {}))",
    "that sets the trace": "sys.settrace(lambda *a: None); return x + 1",
    "with a deep recursion": "def f(n): return x if n == 0 else f(n - 1) + 0\n        return f(900)",
}  # fmt: skip
for words, body in FORWARDS.items():
    text = (
        HEAD + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3))\n"
        + ("    async def forward(self, x):\n        return x\n" if body is None else
           f"    def forward(self, x):\n        {body}\n")
        + "def make(): return M().eval(), (X,)\n"
    )  # fmt: skip
    call(f"model: a forward {words}", lambda root, text=text, words=words: Call(
        ["export", plain(root, text), f"{root}/x.onnx"], own_words="prints" in words, silent="prints" in words))  # fmt: skip

ATTRIBUTES = {
    "a class whose name moves the cursor": "M = type('M\\x1b[2J\\n\\u202e', (nn.Module,), {'forward': lambda s, x: x + 1}); m = M()",
    "a class whose name is no text": "M = type('M\\ud800', (nn.Module,), {'forward': lambda s, x: x + 1}); m = M()",
    "a class of a module that is none": "M = type('M', (nn.Module,), {'forward': lambda s, x: x + 1, '__module__': None}); m = M()",
    "a class of a module that is a number": "M = type('M', (nn.Module,), {'forward': lambda s, x: x + 1, '__module__': 7}); m = M()",
    "a representation that raises": "M = type('M', (nn.Module,), {'forward': lambda s, x: x + 1, '__repr__': lambda s: 1 / 0}); m = M()",
    "attributes without end": "class M(nn.Module):\n    def __getattr__(self, name): return getattr(self, name + 'x')\n    def forward(self, x): return x\nm = M()",
    "attributes that are all there": "class M(nn.Module):\n    def __getattr__(self, name): return super().__getattr__(name) if name in ('training',) or name.startswith('_') else 7\n    def forward(self, x): return x + 1\nm = M()",
    "no truth": "class M(nn.Module):\n    def __bool__(self): raise ValueError\n    def forward(self, x): return x + 1\nm = M()",
    "a length of -1": "class M(nn.Module):\n    def __len__(self): return -1\n    def forward(self, x): return x + 1\nm = M()",
    "an equality that raises": "class M(nn.Module):\n    def __eq__(self, o): raise ValueError\n    __hash__ = nn.Module.__hash__\n    def forward(self, x): return x + 1\nm = M()",
    "no hash": "class M(nn.Module):\n    __hash__ = None\n    def forward(self, x): return x + 1\nm = M()",
    "a state that raises": "class M(nn.Module):\n    def state_dict(self, *a, **k): raise ValueError\n    def forward(self, x): return x + 1\nm = M()",
    "parameters that raise": "class M(nn.Module):\n    def named_parameters(self, *a, **k): raise ValueError('\\x1b[2J')\n    def forward(self, x): return x + 1\nm = M()",
    "a module in itself": "m = nn.Sequential(nn.ReLU())\nm._modules['me'] = m",
    "names that move the cursor": "m = nn.Sequential()\nm._modules['\\x1b[2J\\n'] = nn.Linear(3, 3)",
    "names that are no text": "m = nn.Sequential()\nm._modules['\\ud800'] = nn.Linear(3, 3)",
    "names of a megabyte": "m = nn.Sequential()\nm._modules['x' * 1000000] = nn.Linear(3, 3)",
    "a parameter with an odd name": "m = nn.Linear(3, 3)\nm._parameters['\\x1b[2J/..\\n'] = m._parameters.pop('weight')\nm.forward = lambda x: x @ m._parameters['\\x1b[2J/..\\n']",
    "5,000 levels": "m = nn.ReLU()\nfor _ in range(5000): m = nn.Sequential(m)",
    "400 levels": "m = nn.ReLU()\nfor _ in range(400): m = nn.Sequential(m)",
    "weights that are not numbers": "m = nn.Linear(3, 3)\nm.weight.data.fill_(float('nan'))",
    "infinite weights": "m = nn.Linear(3, 3)\nm.weight.data.fill_(float('inf'))",
    "a weight that is a view of 2 to the 40": "class M(nn.Module):\n    def __init__(s):\n        super().__init__()\n        s.w = torch.ones(1).expand(1 << 40)\n    def forward(s, x): return x + s.w[:3]\nm = M()",
    "a hook that raises": "m = nn.Linear(3, 3)\nm.register_forward_hook(lambda *a: 1 / 0)",
    "a hook that changes the result": "m = nn.Linear(3, 3)\nm.register_forward_hook(lambda m, i, o: o.tolist())",
    "an eval that raises": "m = nn.Linear(3, 3)\nm.train = None",
    "a signature without names": "class M(nn.Module):\n    def forward(*a, **k): return a[1] + 1\nm = M()",
    "a signature that lies": "class M(nn.Module):\n    def forward(self, x): return x + 1\nM.forward.__signature__ = 7\nm = M()",
    "a class that says it is another": "class M(nn.Module):\n    __class__ = dict\n    def forward(self, x): return x + 1\nm = M()",
    "1,000 names for one input": "class M(nn.Module):\n    exec('def forward(self, x' + ''.join(f', a{k}=None' for k in range(1000)) + '): return x + 1')\nm = M()",
}  # fmt: skip
for words, text in ATTRIBUTES.items():
    text = HEAD + text + "\ndef make():\n    m.training = False\n    return m, (X,)\n"
    call(f"model: {words}", lambda root, text=text: Call(["export", plain(root, text), f"{root}/x.onnx"]))

INPUTS = {
    "a tensor of 2 to the 40 that is expanded": "(torch.ones(1).expand(1 << 40),)",
    "65 axes": "(torch.ones([1] * 65),)",
    "a dict with odd names": "({'\\x1b[2J': X, '\\n': X, '': X},)",
    "a dict in itself": "(X, D)",
    "names that are numbers": "{7: X}",
    "names of keywords": "{'self': X}",
    "names with escapes": "{'\\x1b[2J': X}",
    "a generator": "(x for x in [X])",
    "a set": "{1, 2}",
    "nothing": "()",
    "a number": "7",
    "a class": "(nn.ReLU,)",
    "a model": "(nn.ReLU(), X)",
    "a tensor on meta": "(X.to('meta'),)",
    "10 to the 30": "(X, 10**30)",
    "nan": "(X, float('nan'))",
    "a text with escapes": "(X, '\\x1b[2J\\ud800')",
    "a list of 20,000": "(X, [1] * 20_000)",
    "a tensor that is a view of itself": "(X.as_strided((2, 3), (0, 0)),)",
    "tensors that overlap": "(X, X[0], X.T)",
    "an empty tensor": "(X[:0],)",
    "numbers without a mantissa": "(X.to(torch.float8_e4m3fn),)",
    "a negative view": "(torch._neg_view(X),)",
    "a tensor that needs gradients": "(X.clone().requires_grad_(),)",
    "an object with properties that raise": "(X, O())",
}
for words, inputs in INPUTS.items():
    text = (
        HEAD + "D = {}\nD['d'] = D\nclass O:\n    def __getattr__(self, n): raise ValueError('\\x1b[2J')\n"
        "class M(nn.Module):\n    def forward(self, x, *a, **k):\n"
        "        return (x if isinstance(x, torch.Tensor) else X).float() + 1\n"
        f"def make(): return M().eval(), {inputs}\n"
    )  # fmt: skip
    call(f"inputs: {words}", lambda root, text=text: Call(["export", plain(root, text), f"{root}/x.onnx"]))

# ---- options -------------------------------------------------------------------------------------------------------

for option, values in {
    "--dim": ("x", "=", "x=", "=5", "x.0=-5", "x.0=0", "x.99=b", "x.-1=b", "x.0=" + "9" * 400, "x.0=\x1b[2J", "x.0=a b",
              "x.0=__import__('os')", "batch=1e9", "batch=nan", "x.0=\ud800".encode("utf-16", "surrogatepass").decode(
                  "utf-8", "replace"), "x" * 100_000 + "=5", "x.0=" + "a" * 100_000, "nothing=5", "x.0=5", "x..0=a"),
    "--opset": ("0", "-1", "99", "9" * 400, "x", "", "1e3", "1"),
    "--tolerance": ("nan", "-1", "inf", "x", "1e-400", "0", "", "9" * 400),
    "--format": ("", ",", "x", "onnx,onnx", "pte,onnx,pt2", "\x1b[2J", "onnx," * 10_000),
    "--adapter": ("", "/nothing", "/dev/zero", "."), "--task": ("\x1b[2J", "", "text-generation"),
    "--config": ("=", "x", "x=1", "self=1", "a=" + "[" * 10_000), "--cache": ("static", "int8", ""),
    "--place": ("copy", "link"), "--quantize": ("int4", "int8"), "--weights": ("keep",), "--layout":
    ("transformers.js",), "--dtype": ("float16", "float64"), "--lora": ("inputs",), "--for": ("onnxruntime", ""),
    "--inputs": ("2x3", "x=float32[2,3]", "\x1b[2J"),
}.items():  # fmt: skip
    for value in values:
        call(f"option: {option} {value[:20]!r} of {len(value)}", lambda root, option=option, value=value: Call(
            ["export", plain(root), f"{root}/x.onnx", option, value]))  # fmt: skip
for value in ("", "x", "-1x3", "0x3", "9" * 30, "1x" * 70 + "1", "float32[", "float32[]", "float32[2,3", "float99[2,3]",
              "int64[99999999,99999999]", "bool[4,4]", "a=b=c", "=2x4", "\x1b[2J=2x4", "float32[" + "2," * 10_000 + "]",
              "self=2x4", "float8_e4m3fn[3,4]", "string[3,4]", "3.5x4", "[3,4]", "float32[-1,4]", "float32[ 3 , 4 ]",
              "complex64[3,4]", "100000x100000", "1000000000x4"):  # fmt: skip
    call(f"option: --inputs {value[:20]!r} of {len(value)} characters, of a class", lambda root, value=value: Call(
        ["export", "torch.nn:Linear", f"{root}/x.onnx", "--config", "in_features=4", "--config", "out_features=2",
         "--inputs", value]))  # fmt: skip
for config in ("in_features=-4", "in_features=x", "in_features=1e9", "in_features=99999999999", "in_features=[1]",
               "in_features=" + "9" * 5000, "in_features=null", "device=meta", "device=cuda", "dtype=float16",
               "dtype=torch.float99", "in_features=__import__('os').system('true')", "in_features=4.0", "bias=\x1b[2J",
               "in_features=0", "in_features=" + "(" * 10_000, "in_features={'a': 1}"):  # fmt: skip
    call(f"option: --config {config[:40]!r} of {len(config)} characters, of a class", lambda root, config=config: Call(
        ["export", "torch.nn:Linear", f"{root}/x.onnx", "--config", "out_features=2", "--config", config, "--inputs",
         "3x4"]))  # fmt: skip
for source in ("", ":", "a:", ":b", "os:system", "builtins:exec", "torch.nn:Nothing", "nothing:Nothing", "..:x", "a:b:c",
               "torch.nn:Linear.weight", "/dev/zero:make", "/proc/self/mem:make", "\x1b[2J:x", "torch:nn", "-", "package:",
               "package:torch", "package:../..", "package:\x1b[2J", "https://a/b", "/", "/dev/null", "/etc/passwd",
               "torch.nn:" + "x" * 100_000, "x" * 100_000, "subprocess:Popen", "sys:exit", "os:_exit", "time:sleep",
               "transformers:BertModel", "transformers:pipeline", "antigravity:x", "torch.nn:Module"):  # fmt: skip
    call(f"source: {source[:30]!r} of {len(source)}", lambda root, source=source: Call(
        ["export", source, f"{root}/x.onnx", "--inputs", "2x3"]))  # fmt: skip


def generating(root: Path, prompt: str, *more: str, **how: Any) -> Call:
    from hostile_models import exported

    return Call(["generate", str(exported()), prompt, "--max-new-tokens", "2", *more], **how)


def stdin_of(name: str) -> Callable[[], Any]:
    return lambda: os.dup2(os.open(name, os.O_RDONLY), 0)


def piped(content: bytes) -> Callable[[], Any]:
    def change() -> None:
        reads, writes = os.pipe()
        if os.fork() == 0:
            os.close(reads)
            try:
                os.write(writes, content) if len(content) < 60_000 else [
                    os.write(writes, content[k : k + 60_000]) for k in range(0, len(content), 60_000)
                ]
            finally:
                os._exit(0)
        os.close(writes)
        os.dup2(reads, 0)

    return change


for words, prompt, more in (
    ("nothing", "", ()), ("a megabyte", "the rain " * 12_000, ()), ("a surrogate", "\udcff", ()),
    ("escapes", "\x1b[2J\u202e", ()), ("a temperature of nan", "x", ("--temperature", "nan")),
    ("a temperature of 0", "x", ("--temperature", "0")), ("a temperature of -1", "x", ("--temperature", "-1")),
    ("a temperature without end", "x", ("--temperature", "inf")), ("the least temperature", "x", ("--temperature",
     "1e-320")),
    ("a top-p of 5", "x", ("--top-p", "5")), ("a top-p of 0", "x", ("--top-p", "0")), ("a top-p of nan", "x",
     ("--top-p", "nan")),
    ("a top-k of -1", "x", ("--top-k", "-1")), ("a top-k of 0", "x", ("--top-k", "0")), ("a top-k of 10^30", "x",
     ("--top-k", "1" + "0" * 30)),
    ("a seed of -1", "x", ("--seed", "-1", "--top-k", "3")), ("a seed of 10^30", "x", ("--seed", "1" + "0" * 30,
     "--top-k", "3")),
    ("no token", "x", ("--max-new-tokens", "0")),
    ("a system message of escapes", "x", ("--chat", "--system", "\x1b[2J")),
):  # fmt: skip
    call(f"prompt: {words}", lambda root, prompt=prompt, more=more: generating(root, prompt, *more))
for words, before in (
    ("zeros without end", stdin_of("/dev/zero")), ("noise without end", stdin_of("/dev/urandom")),
    ("nothing", stdin_of("/dev/null")), ("a folder", stdin_of("/")), ("no standard input", closed(0)),
    ("other bytes", piped(b"\xff\xfe\x00\x1b[2J")), ("lines", piped(b"a\r\nb\n\n")),
):  # fmt: skip
    call(f"prompt: from standard input: {words}", lambda root, before=before: generating(root, "-", before=before))

# ---- files that may not be read, commands that are told nonsense ---------------------------------------------------


def unreadable(command: str) -> Callable[[Path], Call]:
    def make(root: Path) -> Call:
        import shutil

        os.chmod(root, 0o755)
        os.chmod(root / "at", 0o777)
        if command in ("inspect", "report"):
            path = made_onnx(root)
        elif command == "convert":
            path = Path(shutil.copy(Path(__file__).parent.parent / "golden" / "mlp.pt2", root / "given" / "x.pt2"))
        elif command == "script":
            plain(root)
            path = root / "given" / "model.py"
        else:
            path = Path(shutil.copytree(checkpoint(), root / "given" / "source"))
            if command != "folder":
                path = path / command
        path.chmod(0)
        source = str(path if path.is_dir() or path.suffix not in (".json", ".safetensors") else path.parent)
        words = {
            "inspect": ["inspect", source], "report": ["report", source], "convert": ["convert", source, "y.onnx"],
            "script": ["export", f"{source}:make", "x.onnx"],
        }.get(command, ["export", source, "out", "--no-verify"])  # fmt: skip
        return Call(words, as_nobody)

    return make


for command in ("inspect", "report", "convert", "script", "folder", "config.json", "model.safetensors",
                "tokenizer_config.json", "tokenizer.json"):  # fmt: skip
    call(f"unreadable: {command}", unreadable(command))
for line in (
    ["doctor", "x"], ["doctor", "--json"], ["completion"], ["completion", "x"], ["completion", "\x1b[2J"],
    ["inspect"], ["report"], ["nothing"], ["\x1b[2J"], ["--nothing"], ["--\x1b[2J"], [], ["export", "--help\x1b[2J"],
    ["inspect", "a", "b", "c"], ["sweep", "/nothing"], ["sweep", "/"], ["sweep", "/dev/zero"], ["sweep", "/dev/null"],
    ["verify", "/"], ["verify", "/", "--against", "/"], ["report", "/"], ["report", "/dev/zero"], ["inspect", "/dev"],
    ["inspect", "/proc/self"], ["generate", "/", "x"], ["generate", "/dev/null", "x"], ["convert", "/dev/zero"],
    ["convert", "/"], ["convert", ""], ["inspect", ""], ["report", ""], ["generate", "", "x"], ["sweep", ""],
    ["verify", "", "--against", ""], ["export", ""], ["export", "", ""], ["inspect", "x" * 100_000],
    ["report", "/nothing\x1b[2J\n"], ["inspect", "\udcff"], ["convert", "\udcff"], ["generate", "\udcff", "x"],
    ["report", "\udcff"], ["sweep", "\udcff"], ["verify", "\udcff", "--against", "\udcff"], ["export", "\udcff"],
    ["demo", "/dev/null"], ["demo", "/proc/x"], ["sweep", "/dev/null", "--timeout", "nan"], ["sweep", "/dev/null", "-j",
     "99999999999999999999"], ["sweep", "/dev/null", "--ray", "--ray-address", "\x1b[2J"],
):  # fmt: skip
    call(f"words: {' '.join(line)[:60]!r} of {sum(map(len, line))}", lambda root, line=line: Call(line))

# ---- files that change while they are read -------------------------------------------------------------------------


def changing(path: Path, how: str, seconds: float = 8) -> Callable[[], None]:
    """Another process does it to the file again and again."""

    def change() -> None:
        if os.fork() != 0:
            return
        import random
        import time

        content, draw, end = path.read_bytes(), random.Random(0), time.monotonic() + seconds
        other = path.with_suffix(".other")
        try:
            while time.monotonic() < end:
                time.sleep(draw.random() / 20)
                if how == "cut":
                    os.truncate(path, draw.randrange(len(content)))
                    time.sleep(0.002)
                    path.write_bytes(content)
                elif how == "removed":
                    path.unlink(missing_ok=True)
                    time.sleep(0.002)
                    path.write_bytes(content)
                elif how == "replaced":
                    other.write_bytes(bytes(draw.randbytes(64)) + content[64:])
                    other.rename(path)
                    time.sleep(0.002)
                    other.write_bytes(content)
                    other.rename(path)
                else:
                    with open(path, "r+b") as file:
                        file.seek(draw.randrange(len(content)))
                        file.write(b"\xff" * 8)
                    path.write_bytes(content)
        finally:
            os._exit(0)

    return change


def moving(kind: str, how: str, more: tuple[str, ...] = ()) -> Callable[[Path], Call]:
    def make(root: Path) -> Call:
        import checkpoints
        from hostile_models import exported

        given = root / "given"
        out = f"{root}/out"
        if kind == "pt2":
            path = Path(shutil.copy(Path(__file__).parent.parent / "golden" / "mlp.pt2", given / "x.pt2"))
            words = ["convert", str(path), f"{root}/x.onnx", *more]
        elif kind == "onnx":
            path = made_onnx(root)
            words = ["inspect", str(path)]
        elif kind == "gguf":
            path = given / "x.gguf"
            checkpoints.gguf(path, ("Q4_0",))
            words = ["export", str(path), out, "--no-verify", *more]
        elif kind == "weights":
            source = Path(shutil.copytree(exported().parent / "source", given / "source"))
            path = source / "model.safetensors"
            words = ["export", str(source), *([] if "--in-place" in more else [out]), "--no-verify", *more]
        elif kind == "script":
            plain(root)
            path = given / "model.py"
            words = ["export", f"{path}:make", f"{root}/x.onnx"]
        else:
            folder = Path(shutil.copytree(exported(), given / "out"))
            path = folder / kind
            words = ["generate", str(folder), "the rain", "--max-new-tokens", "5"]
        return Call(words, changing(path, how))

    return make


for how in ("cut", "removed", "replaced", "written to"):
    for kind, more in (
        ("pt2", ()), ("pt2", ("--no-verify",)), ("onnx", ()), ("gguf", ()), ("gguf", ("--weights", "keep")),
        ("weights", ()), ("weights", ("--in-place",)), ("weights", ("--place", "copy")), ("weights", ("--place", "link")),
        ("script", ()), ("model.onnx", ()), ("generation.json", ()), ("tokenizer.json", ()),
    ):  # fmt: skip
        call(f"moving: {kind} {' '.join(more)} is {how} meanwhile", moving(kind, how, more))
