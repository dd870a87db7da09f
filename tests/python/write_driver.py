"""Writes each kind of file again and again, stopped or failing at every call in turn: see test_writes.py.

Run with write_shim.so preloaded: python write_driver.py SHIM FOLDER KIND... Models are exported once; each write
happens in a fork of this process, so that killing it costs a few milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from fairlead.base.staged import staged_folder
from fairlead.runtime import manifest
from fairlead.targets.executorch.export import StagedFile
from fairlead.targets.pt2.export import ProgramFile
from untouched import files

import fairlead
from fairlead import _core

onnxruntime.set_default_logger_severity(4)
torch.set_num_threads(1)
X = torch.linspace(-1, 1, 2 * 32).reshape(2, 32)


def linear(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32)).eval()


MODELS = {"old": linear(0), "new": linear(1)}
EXPECTED = {which: model(X).detach().numpy() for which, model in MODELS.items()}


KNOWN: dict[tuple, str] = {}


def computes(path: Path) -> str:
    """Which model a file is; an error where it is neither. The same bytes of all files are run once."""
    beside = [path.parent / name for name in _core.read_summary(str(path))["external_files"]]
    key = tuple(file.read_bytes() if file.exists() else None for file in [path, *sorted(beside)])
    if key not in KNOWN:
        KNOWN[key] = loaded(path)
    return KNOWN[key]


def loaded(path: Path) -> str:
    session = onnxruntime.InferenceSession(path)
    (got,) = session.run(None, {session.get_inputs()[0].name: X.numpy()})
    return next(which for which, expected in EXPECTED.items() if np.allclose(got, expected, atol=1e-5))


class Onnx:
    """One model, with its weights inside or beside it."""

    def __init__(self, folder: Path, external: str):
        self.path = self.name = folder / "model.onnx"
        self.external = external
        self.models = {w: fairlead.export(m, (X,), None, verify=False).model for w, m in MODELS.items()}

    def write(self, which: str) -> None:
        staged = self.models[which].write(str(self.path), self.external)
        try:
            staged.add_metadata("fairlead.checked", "at the end")
            staged.commit()
        finally:
            staged.discard()

    def state(self) -> str:
        return computes(self.path)


class Large(Onnx):
    """Data of 33 MB, which a thread of its own writes."""

    def __init__(self, folder: Path, external: str):
        self.path = self.name = folder / "model.onnx"
        self.external, self.models, self.whole = external, {}, {}
        for seed, which in enumerate(("new", "old")):
            torch.manual_seed(seed)
            model = torch.nn.Sequential(torch.nn.Linear(32, 1 << 18, bias=False), torch.nn.AdaptiveAvgPool1d(4)).eval()
            self.models[which] = fairlead.export(model, (X,), None, verify=False).model
            self.write(which)
            self.whole[which] = self.read()
            session = onnxruntime.InferenceSession(self.path)
            (got,) = session.run(None, {session.get_inputs()[0].name: X.numpy()})
            assert np.allclose(got, model(X).detach().numpy(), atol=1e-5)

    def read(self) -> list[bytes]:
        (data,) = _core.read_summary(str(self.path))["external_files"]
        return [self.path.read_bytes(), (self.path.parent / data).read_bytes()]

    def state(self) -> str:
        found = self.read()
        return next(which for which, whole in self.whole.items() if found == whole)


class Folder(Onnx):
    """Two parts that share a data file, and what lists them, in a folder with a file of the user's."""

    def __init__(self, folder: Path, external: str):
        super().__init__(folder, external)
        self.folder = self.name = folder / "out"
        self.folder.mkdir()
        (self.folder / "README.md").write_text("mine")

    def write(self, which: str) -> None:
        shared = _core.SharedWeights()
        for tensor in MODELS[which].parameters():
            shared.declare(tensor.data_ptr(), tensor.untyped_storage().nbytes())
        with staged_folder(str(self.folder), "export") as staged:
            for name in ("encoder.onnx", "decoder.onnx"):
                self.models[which].write(os.path.join(staged, name), self.external, shared).commit()
            manifest.write(staged, {"which": which})

    def state(self) -> str:
        assert (self.folder / "README.md").read_text() == "mine"
        which = json.loads((self.folder / manifest.FILE).read_text())["which"]
        assert [computes(self.folder / f"{name}.onnx") for name in ("encoder", "decoder")] == [which, which]
        return which


class Bytes:
    """One file without a name in it: what it holds is compared with what a first write made."""

    def __init__(self, folder: Path, external: str):
        self.path = folder / f"file.{external}"
        self.make()
        self.whole = {}
        for which in ("new", "old"):
            self.write(which)
            self.whole[which] = self.path.read_bytes()
            self.check_loads(which)

    def state(self) -> str:
        found = self.path.read_bytes()
        return next(which for which, whole in self.whole.items() if found == whole)

    def make(self) -> None: ...

    def check_loads(self, which: str) -> None: ...


class Pt2(Bytes):
    def make(self) -> None:
        self.programs = {which: torch.export.export(model, (X,)) for which, model in MODELS.items()}

    def write(self, which: str) -> None:
        file = ProgramFile(self.programs[which], str(self.path))
        file.add_metadata("fairlead.contract", which)
        file.commit()

    def check_loads(self, which: str) -> None:
        got = torch.export.load(self.path).module()(X).detach().numpy()
        assert np.allclose(got, EXPECTED[which], atol=1e-5)


class Pte(Bytes):
    def make(self) -> None:
        from fairlead.targets.executorch.write import WriteOptions, write

        self.bytes = {}
        for which, model in MODELS.items():
            with open(self.path, "wb") as file:
                write(torch.export.export(model, (X,)), file, WriteOptions(backend=None))
            self.bytes[which] = self.path.read_bytes()

    def write(self, which: str) -> None:
        staged = StagedFile(str(self.path))
        try:
            with staged.staging.open() as file:
                file.write(self.bytes[which])
            staged.commit()
        finally:
            staged.discard()

    def check_loads(self, which: str) -> None:
        from fairlead.targets.executorch.session import ExecutorchSession

        (got,) = ExecutorchSession(str(self.path)).tensors([X])
        assert np.allclose(got.numpy(), EXPECTED[which], atol=1e-5)


class Page(Bytes):
    def write(self, which: str) -> None:
        fairlead.report.write_page(which * 10_000, str(self.path))


KINDS = {
    "onnx": (Onnx, "never"), "onnx with data": (Onnx, "always"), "folder": (Folder, "always"), "pt2": (Pt2, "pt2"),
    "pte": (Pte, "pte"), "page": (Page, "html"), "large onnx with data": (Large, "always"),
}  # fmt: skip
# Where one of these fails, what is not wanted any more may stay until the next write: it cannot be removed, or the disk
# did not say that the new names are on it, and the old ones could come back.
TIDYING = {"unlink", "unlinkat", "rmdir", "remove", "openat", "opendir", "open", "close", "flock", "fsync"}
DONE, REFUSED, WRONG = 0, 3, 4


def child(shim, case, folder: Path, at: int, kills: bool, says: int) -> None:
    """Writes `new` with the shim armed; never returns."""
    code = WRONG
    try:
        shim.shim_arm(str(folder).encode(), at, kills)
        try:
            case.write("new")
            code = DONE
        except fairlead.WriteError as error:
            code = REFUSED if "\n" not in str(error) and "Could not write" in str(error) else WRONG
        finally:
            shim.shim_disarm()
        os.write(says, json.dumps([shim.shim_count(), shim.shim_last().decode()]).encode())
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        code = WRONG
    finally:
        os._exit(code)


def attempt(shim, case, folder: Path, at: int, kills: bool) -> tuple[int, int, str]:
    """(exit status, calls, the call that failed); a kill has no calls to report."""
    reads, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(shim, case, folder, at, kills, says)
    os.close(says)
    with os.fdopen(reads) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    calls, failed = json.loads(text) if text else (0, "")
    return status, calls, failed


def main() -> None:
    shim = ctypes.CDLL(sys.argv[1])
    shim.shim_count.restype, shim.shim_last.restype = ctypes.c_long, ctypes.c_char_p
    shim.shim_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    seen = {}
    for kind in sys.argv[3:]:
        folder = Path(sys.argv[2]) / kind
        folder.mkdir()
        seen[kind] = tried(shim, kind, folder)
    print(json.dumps(seen))


def tried(shim, kind: str, folder: Path) -> dict:
    """What became of a write that was stopped at every call."""
    make, external = KINDS[kind]
    case = make(folder, external)
    case.write("old")
    assert case.state() == "old"
    clean = files(folder)
    start = time.perf_counter()
    seen = {"calls": 0, "killed": 0, "refused": 0, "old": 0, "new": 0}
    status, seen["calls"], _ = attempt(shim, case, folder, 0, False)
    assert status == DONE
    assert case.state() == "new"
    renewed = files(folder)
    case.write("old")
    assert files(folder) == clean
    for kills in (True, False):
        for at in range(1, seen["calls"] + 1):
            status, _, failed = attempt(shim, case, folder, at, kills)
            where = f"{kind} {'killed' if kills else failed} at call {at} of {seen['calls']}: status {status}"
            assert status in ((-signal.SIGKILL,) if kills else (DONE, REFUSED)), where
            try:
                which = case.state()
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__} {error}, {list(files(folder))}") from error
            assert status != DONE or which == "new", where
            if not kills and failed not in TIDYING:
                assert files(folder) in (clean, renewed), f"{where}: {list(files(folder))}"
            seen[which] += 1
            seen["killed" if kills else "refused"] += status != DONE
            case.write("old")
            assert files(folder) == clean, f"{where}: then {sorted(files(folder))}"
    return seen | {"seconds": round(time.perf_counter() - start, 1)}


if __name__ == "__main__":
    main()
