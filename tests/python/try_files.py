"""Every command on every file of hostile_files.py, each in a process of its own, forked when everything is imported.

python tests/python/try_files.py [--only WORDS] [--all] [--part 0/2]
python tests/python/try_files.py --calls [--only WORDS] [--part 0/2]     the calls of hostile_calls.py

A command has to end within SECONDS of its own time, with 0, 1 or 2, with one line on stderr where it is not 0, without
a traceback or a word about a fault of ours, without control characters in what it prints, and within BYTES.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

SECONDS = 10  # of processor time
PATIENCE = 60  # of the clock: a command that waits for something
BYTES = 3 << 30
MOST = 8 << 30  # of memory that may be asked for: the machine survives what a command should have refused
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MINE = ("mine", "list.txt", "f")  # files of the user's own
PLAIN = "x = __import__('torch').rand(2, 2)\ndef make():\n    return __import__('torch').nn.ReLU().eval(), (x,)\n"


def commands(name: str, path: Path, work: Path, every: bool) -> Iterator[list[str]]:
    """Those that take such a file; with `every`, the others too."""
    kind = name.partition(":")[0]
    (work / "plain.py").write_text(PLAIN)
    against = (
        str(path) if kind in ("folder", "checkpoint", "safetensors", "gguf", "quantised") else f"{work}/plain.py:make"
    )
    known = {
        "convert": [["convert", str(path), f"{work}/c.onnx"], ["convert", str(path), f"{work}/n.onnx", "--no-verify"]],
        "inspect": [["inspect", str(path)], ["inspect", str(path), "--json"]],
        "report": [["report", str(path), "-o", f"{work}/page.html"]],
        "verify": [["verify", str(path), "--against", against]],
        "export": [["export", str(path), f"{work}/out", "--no-verify"]],
        "generate": [["generate", str(path), "the rain", "--max-new-tokens", "3", *more] for more in ([], ["--chat"])],
        "sweep": [["sweep", str(path), "-o", f"{work}/swept"]],
        "keep": [["export", str(path), f"{work}/out", "--no-verify", "--weights", "keep"]],
        "place": [["export", str(path), f"{work}/out", "--no-verify", "--place", "copy"]],
        "adapt": [["export", f"{path}/../base", f"{work}/out", "--no-verify", "--adapter", str(path), *more] for more in
                  ([], ["--lora", "inputs"])],
    }  # fmt: skip
    takes = {
        "pt2": ("convert",), "zip": ("convert",), "weights": ("convert",), "onnx": ("inspect", "report", "verify"),
        "folder": ("inspect", "report", "verify", "generate"), "checkpoint": ("export",), "safetensors": ("export",),
        "gguf": ("export", "keep"), "list": ("sweep",), "quantised": ("export", "keep", "place"),
        "placed": ("export", "place"), "adapter": ("adapt",),
    }[kind]  # fmt: skip
    for command, lines in known.items():
        if command in takes or (
            every and command not in ("keep", "place", "adapt") and (command != "sweep" or path.is_file())
        ):
            yield from lines


def attempt(
    words: list[str],
    where: Path,
    before: Callable[[], Any] = lambda: None,
    own_words: bool = False,
    silent: bool = False,
) -> str:
    """What is wrong with how a command ended; "" where nothing is. `before` is called in its process."""
    out, err = where / "stdout", where / "stderr"
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 2, SECONDS + 4))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))
            from fairlead import cli

            sys.argv = ["fairlead", *words]
            os.chdir(where)
            before()
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 98
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # where there is none, as Python ends
                    stream.flush()
            os._exit(code)
    status = used = None
    while status is None:
        done, found, usage = os.wait4(child, os.WNOHANG)
        if done:
            status, used = found, usage
        elif time.monotonic() - start > PATIENCE:
            os.killpg(child, signal.SIGKILL)
            os.wait4(child, 0)
            return f"did not end within {PATIENCE} s"
        else:
            time.sleep(0.005)
    said, told = (path.read_text(errors="replace") if path.exists() else "" for path in (out, err))
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)}: {told[-200:]!r}"
    code = os.WEXITSTATUS(status)
    if code not in (0, 1, 2):
        return f"exit status {code}: {told[-300:]!r}"
    if "Traceback" in told or "fault in Fairlead" in told or "Internal" in told or "nternal error" in told:
        return f"blames us: {told[-500:]!r}"
    if not own_words and (found := CONTROLS.search(said + told)):
        return f"prints {found[0]!r}"
    told_besides = ("fairlead: ", "Where, why and what to try", "Not checked: ")
    lines = [line for line in told.splitlines() if not line.startswith(told_besides)]
    if words[:1] == ["sweep"] and not any(line.startswith("error:") for line in lines):  # it tells of each model
        lines = ["error: ["] if code and all(re.match(r"\[\d+/\d+\] ", line) for line in lines) else lines
    usage_line = bool(lines) and lines[0].startswith("Usage:")
    if (
        code
        and not silent
        and not usage_line
        and not (len(lines) == 1 and lines[0].startswith("error: ["))
        and not (code == 1 and "differs in" in said)
    ):
        return f"{len(lines)} lines: {told[:500]!r}"
    if not code and lines and not silent:
        return f"ends well and says {told[:300]!r}"
    if used.ru_utime + used.ru_stime > SECONDS:
        return f"took {used.ru_utime + used.ru_stime:.1f} s"
    if used.ru_maxrss * 1024 > BYTES:
        return f"took {used.ru_maxrss >> 10} MB"
    return ""


def call_made(name: str, root: Path) -> str:
    """What is wrong with how a call of hostile_calls.py ended."""
    from hostile_calls import CALLS

    call = CALLS[name](root)
    mine = {path: path.read_bytes() for path in (root / "given").rglob("*") if path.is_file() and path.name in MINE}

    def before() -> None:
        for key, value in call.env.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})
        call.before()

    problem = attempt(call.words, root / "at", before, call.own_words, call.silent)
    told = (root / "at" / "stderr").read_text(errors="replace")
    fault = "they ended the process" in told  # who dies of it leaves what is staged to the next export
    hidden = [] if fault else [path.name for path in root.rglob(".*.fairlead-??????") if "AAAAAA" not in path.name]
    if lost := [path.name for path, content in mine.items() if not path.is_file() or path.read_bytes() != content]:
        problem = problem or f"changed {', '.join(lost)}"
    return problem or (f"left {', '.join(hidden)}" if hidden else "")


def left_behind(root: Path) -> str:
    """What lies where the command was to write, and should not: something half done, or a file in spite of an error."""
    made = [path for path in root.iterdir() if path.name not in ("given", "at", "plain.py")]
    failed = "error: [" in (root / "at" / "stderr").read_text(errors="replace")
    told = [path for path in made if path.is_dir() and os.listdir(path) == ["report.html"]]  # why it failed
    spoilt = [path for path in made if failed and path.suffix in (".onnx", "") and path not in told]
    wrong = [path.name for path in made if path.name.startswith(".") or path in spoilt]
    for path in made:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return f"left {', '.join(wrong)}" if wrong else ""


def warm_up() -> None:
    """Everything of ours and what it needs, so that a fork costs little."""
    import fairlead

    for module in pkgutil.walk_packages(fairlead.__path__, "fairlead."):
        if not module.name.startswith(("fairlead.exporters", "fairlead.patches.rows", "fairlead.__main__")):
            importlib.import_module(module.name)
    for name in ("onnxruntime", "tokenizers", "jinja2", "transformers.models.bert.modeling_bert"):
        importlib.import_module(name)
    import transformers.models.llama.modeling_llama  # noqa: F401


def try_all(names: list[str], every: bool, number: int = 0, jobs: int = 1, show=print) -> tuple[int, list[str]]:
    """(commands tried, what went wrong)."""
    from hostile_calls import CALLS
    from hostile_files import FILES

    tried, wrong = 0, []
    for name in names[number::jobs]:
        root = Path(tempfile.mkdtemp(prefix="fairlead-try-"))
        try:
            (root / "given").mkdir()
            if name in CALLS:
                (root / "at").mkdir()
                tried += 1
                if problem := call_made(name, root):
                    wrong.append(f"{name!r}: {problem}")
                    show(wrong[-1], flush=True)
                continue
            path = FILES[name](root / "given")
            for words in commands(name, path, root, every):
                (root / "at").mkdir(exist_ok=True)
                problem = attempt(words, root / "at") or left_behind(root)
                tried += 1
                if problem:
                    shown = " ".join([words[0], *(w for w in words[1:] if w.startswith("--"))])
                    wrong.append(f"{name!r}: {shown}: {problem}")
                    show(wrong[-1], flush=True)
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return tried, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true", help="every command, also those that do not take such a file")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--calls", action="store_true", help="calls that are wrong in other ways than by their file")
    parser.add_argument("--found", action="store_true", help="those that once ended a command otherwise")
    given = parser.parse_args()
    import hostile_wholes  # noqa: F401, I001  # the new ones last: parts stay what they were
    import hostile_quantized  # noqa: F401
    import hostile_checkpoints  # noqa: F401
    import hostile_odd  # noqa: F401
    import hostile_parts
    from hostile_calls import CALLS
    from hostile_files import FILES

    warm_up()
    names = hostile_parts.FOUND if given.found else [n for n in (CALLS if given.calls else FILES) if given.only in n]
    number, jobs = map(int, given.part.split("/"))
    start = time.monotonic()
    tried, wrong = try_all(names, given.all, number, jobs)
    print(f"{len(names[number::jobs])} files, {tried} commands, {len(wrong)} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
