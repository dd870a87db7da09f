"""Whole exports of checkpoints, as the command makes them, that die or fail at every call: see test_writes.py.

Run with write_shim.so preloaded: python commit_driver.py SHIM FOLDER EVERY KIND... An export is made once; before each
of its calls its folder is kept as a process that dies there leaves it. Each such state is looked at, and some are
exported into again. Then each EVERY-th call fails.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoints
import onnxruntime
import torch
from quantized_checkpoints import folder_of
from write_driver import DONE, REFUSED, TIDYING, WRONG

import fairlead

onnxruntime.set_default_logger_severity(4)
torch.set_num_threads(1)
OPSET = {"old": 20, "new": 21}
STAGED = ".fairlead-"


def adapter(folder: Path) -> Path:
    import peft
    import transformers

    base = transformers.LlamaForCausalLM.from_pretrained(folder)
    settings = peft.LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    peft.get_peft_model(base, settings).save_pretrained(folder.parent / "adapter")
    return folder.parent / "adapter"


class Whole:
    """A folder that has to be the old one or the new one, all of it."""

    in_place = False

    def __init__(self, root: Path, make: Callable[[Path], Path], **how: Any):
        self.source = make(root / "source")
        self.folder = root / "made"
        self.folder.mkdir()
        self.out = self.folder / "out"
        if how.get("adapter"):
            how["adapter"] = adapter(self.source)
        self.how = how

    def write(self, which: str) -> None:
        fairlead.export_checkpoint(self.source, self.out, verify=False, opset=OPSET[which], **self.how)

    def at(self, folder: Path) -> Path:
        return folder / "out"


class InPlace(Whole):
    """Files that are put into the checkpoint's folder one by one."""

    in_place = True

    def __init__(self, root: Path, make: Callable[[Path], Path], **how: Any):
        super().__init__(root, make, in_place=True, **how)
        self.folder.rmdir()
        self.source.rename(self.folder)
        self.source = self.out = self.folder

    def write(self, which: str) -> None:
        fairlead.export_checkpoint(self.source, verify=False, opset=OPSET[which], **self.how)

    def at(self, folder: Path) -> Path:
        return folder


def several(folder: Path) -> Path:
    return checkpoints.t5(folder)


KINDS: dict[str, Callable[[Path], Whole]] = {
    "weights beside": lambda root: Whole(root, checkpoints.bert, external_data="always"),
    "several parts": lambda root: Whole(root, several, external_data="always"),
    "copied files": lambda root: Whole(root, checkpoints.llama, place="copy"),
    "linked files": lambda root: Whole(root, checkpoints.llama, place="link"),
    "int4": lambda root: Whole(root, checkpoints.llama, quantize=fairlead.Int4(), target=fairlead.OnnxRuntime()),
    "kept weights": lambda root: Whole(root, lambda at: (folder_of(at, "GPTQ 4 bits"), at)[1], weights=fairlead.Keep()),
    "a merged adapter": lambda root: Whole(root, checkpoints.llama, adapter=True),
    "an adapter of inputs": lambda root: Whole(root, checkpoints.llama, adapter=True, lora="inputs"),
    "for transformers.js": lambda root: Whole(root, checkpoints.bert, layout="transformers.js"),
    "several formats": lambda root: Whole(root, checkpoints.bert, formats=("onnx", "pt2")),
    "in place": lambda root: InPlace(root, checkpoints.llama),
    "in place, converted": lambda root: InPlace(root, checkpoints.llama, dtype="float16"),
}


def files(folder: Path) -> dict[str, str]:
    """What is in a folder, but for what is staged."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(STAGED in part for part in Path(name).parts[:-1]):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def is_data(name: str) -> bool:
    return name.endswith(".data")


def which_of(case: Whole, found: dict[str, str], old: dict[str, str], new: dict[str, str], where: str) -> str:
    """Old or new; data that no model refers to yet, or any more, may be beside it."""
    if case.in_place:
        for name, content in found.items():
            assert content in (old.get(name), new.get(name)), f"{where}: {name} is neither"
        assert set(found) >= {n for n in set(old) & set(new) if not is_data(n)}, f"{where}: {sorted(found)}"
        which = "new" if found["model.onnx"] == new["model.onnx"] else "old"
        needs = {n for n in (old, new)[which == "new"] if is_data(n)}
        assert needs <= set(found), f"{where}: without {needs - set(found)}"
        return which
    for which, whole in (("old", old), ("new", new)):
        if found == whole:
            return which
    raise AssertionError(f"{where}: neither: {sorted(set(found.items()) ^ set(new.items()))[:6]}")


def staged_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith(".") and STAGED in path.name]


def forked(work: Callable[[], list[Any]]) -> tuple[int, list[Any]]:
    reads, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = WRONG
        try:
            code, told = work()
            os.write(says, json.dumps(told).encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(says)
    with os.fdopen(reads) as file:
        text = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), json.loads(text) if text else []


def tried(shim: Any, kind: str, root: Path, every: int) -> dict[str, int]:
    case = KINDS[kind](root)
    case.write("old")
    old, before = files(case.at(case.folder)), root / "before"
    shutil.copytree(case.folder, before, symlinks=True)
    kept = root / "kept"
    kept.mkdir()

    def export(at: int, keeps: bool) -> tuple[int, list[Any]]:
        def work() -> tuple[int, list[Any]]:
            code, text = DONE, ""
            if keeps:
                shim.shim_keep(str(kept).encode())
            shim.shim_arm(str(case.folder).encode(), at, 0)
            try:
                case.write("new")
            except fairlead.FairleadError as error:
                code, text = (REFUSED if "\n" not in str(error) else WRONG), str(error)
            finally:
                shim.shim_disarm()
            return code, [shim.shim_count(), shim.shim_last().decode(), text]

        return forked(work)

    status, (calls, _, text) = export(0, True)
    assert status == DONE, text
    new = files(case.at(case.folder))
    assert new != old
    assert not staged_in(case.folder)
    seen = {"calls": calls, "states": 0, "old": 0, "new": 0, "again": 0, "failed": 0, "refused": 0}
    states: dict[str, Path] = {}
    for at in range(1, calls + 1):
        state = kept / str(at)
        found = files(case.at(state))
        seen[which_of(case, found, old, new, f"{kind} killed at call {at} of {calls}")] += 1
        states[json.dumps([found, sorted(str(p.relative_to(state)) for p in state.rglob("*"))])] = state
    seen["states"] = len(states)

    def put_back(state: Path) -> None:
        for path in case.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(state, case.folder, symlinks=True, dirs_exist_ok=True)

    draw = random.Random(kind)
    for state in draw.sample(list(states.values()), min(len(states), max(3, len(states) // every))):
        put_back(state)
        case.write("new")
        names = {n for n in files(case.at(case.folder)) if not is_data(n)}
        assert names == {n for n in new if not is_data(n)}, f"{kind}: exported again after {state.name}"
        assert not staged_in(case.folder), f"{kind}: exported again after {state.name}: {staged_in(case.folder)}"
        seen["again"] += 1
    for at in range(draw.randrange(every) + 1, calls + 1, every):
        put_back(before)
        status, told = export(at, False)
        where = f"{kind}, call {at} of {calls} failed ({told[1:]})"
        assert status in (DONE, REFUSED), where
        found = files(case.at(case.folder))
        if not case.in_place and status == DONE:
            assert set(found) - set(old) <= set(new), where
        elif status == REFUSED and not case.in_place:
            assert found in (old, new) or set(found) == set(new), where
            assert told[1] in TIDYING or not staged_in(case.folder), f"{where}: {staged_in(case.folder)}"
        seen["failed"] += 1
        seen["refused"] += status == REFUSED
    return seen


def main() -> None:
    shim = ctypes.CDLL(sys.argv[1])
    shim.shim_count.restype, shim.shim_last.restype = ctypes.c_long, ctypes.c_char_p
    shim.shim_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    shim.shim_keep.argtypes = [ctypes.c_char_p]
    for kind in sys.argv[4:]:
        root = Path(tempfile.mkdtemp(dir=sys.argv[2]))
        try:
            print(json.dumps({kind: tried(shim, kind, root, int(sys.argv[3]))}), flush=True)
        finally:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
