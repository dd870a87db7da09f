"""No command runs code from a file: every way in that a checkpoint or an archive has, with "y" on standard input."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import checkpoints
import hostile_archives as hostile
import pytest
import torch
from hostile_archives import ARCHIVES, FOLDERS

import fairlead
from fairlead import _core

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def sentinel(tmp_path):
    return tmp_path / "sentinel"


@pytest.fixture
def yes(run, monkeypatch, tmp_path):
    """Runs a command in the hostile folder with "y" for every question; a traceback is a failure."""

    def run_yes(*words):
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 1000))
        monkeypatch.setattr("builtins.input", lambda *_: "y")
        return run(*words)

    return run_yes


# ---- folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_checkpoint_folder_runs_nothing(yes, sentinel, tmp_path, monkeypatch, kind):
    source = hostile.folder(tmp_path / "source", sentinel)
    FOLDERS[kind](source)
    monkeypatch.chdir(source)
    code, _, err = yes("export", source, tmp_path / "out", "--no-verify")
    assert not sentinel.exists(), err
    assert code in (0, 1, 2)
    yes("verify", source, "--against", source)
    yes("inspect", source)
    yes("report", source)
    yes("generate", source, "y", "--max-new-tokens", 1)
    (tmp_path / "list.txt").write_text(f"{source}\n")
    assert not sentinel.exists()


@pytest.mark.parametrize("kind", ["a model type of its own", "an architecture of its own"])
def test_code_of_a_checkpoint_is_refused_with_the_option_that_allows_it(yes, sentinel, tmp_path, kind):
    source = hostile.folder(tmp_path / "source", sentinel)
    FOLDERS[kind](source)
    code, _, err = yes("export", source, tmp_path / "out")
    assert code == 2
    assert err.strip().splitlines()[-1] == (
        f"error: [export] Expected a model of Transformers, got one with code of its own in '{source}', which is not "
        "run. Pass --trust-remote-code (trust_remote_code=True) where you have read that code."
    )
    yes("export", source, tmp_path / "out", "--trust-remote-code")
    assert sentinel.exists()  # it was asked for


def test_a_sweep_gives_its_models_nothing_to_say_yes_with(sentinel, tmp_path):
    source = hostile.folder(tmp_path / "source", sentinel)
    FOLDERS["a model type of its own"](source)
    (source / "list.txt").write_text(f"{source}\n")
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", "sweep", "list.txt", "-o", str(tmp_path / "swept")],
        input="y\n" * 1000, text=True, capture_output=True, cwd=source, check=False,
    )  # fmt: skip
    assert not sentinel.exists(), done.stderr
    assert "code of its own" in (tmp_path / "swept" / "results.jsonl").read_text()


def test_a_module_in_the_working_folder_is_not_pytorch(sentinel, tmp_path):
    source = hostile.folder(tmp_path / "source", sentinel)
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", "export", "torch.nn:Linear", str(tmp_path / "x.onnx"), "--config",
         "in_features=4", "--config", "out_features=2", "--inputs", "3x4", "--no-verify"],
        text=True, capture_output=True, cwd=source, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not sentinel.exists()


# ---- archives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_runs_nothing(yes, sentinel, tmp_path, kind, verify):
    entries = hostile.read_archive(GOLDEN / "mlp.pt2")
    ARCHIVES[kind](entries, sentinel)
    path = hostile.write_archive(tmp_path / "x.pt2", entries)
    code, _, err = yes("convert", path, tmp_path / "x.onnx", *([] if verify else ["--no-verify"]))
    assert not sentinel.exists(), err
    assert "Traceback" not in err
    harmless = kind.startswith("sample inputs")  # it is made up then
    assert (code == 0) == (harmless or (not verify and (tmp_path / "x.onnx").exists())), err


@pytest.mark.parametrize("kind", [kind for kind in ARCHIVES if "pickle" in kind and "sample" not in kind])
def test_pickles_are_refused_before_anything_is_read(sentinel, tmp_path, kind):
    entries = hostile.read_archive(GOLDEN / "mlp.pt2")
    ARCHIVES[kind](entries, sentinel)
    with pytest.raises(_core.Unsupported, match=r"which is code that reading would run. Nothing was loaded."):
        _core.read_pt2(str(hostile.write_archive(tmp_path / "x.pt2", entries)))


def test_a_program_read_without_unpickling_computes_the_same(tmp_path):
    """Tied weights, an empty one, one that is a view, a buffer that is written."""

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(4, 4)
            self.b = torch.nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.register_buffer("cut", torch.arange(12.0).reshape(3, 4)[:, 1])
            self.register_buffer("none", torch.zeros(0, 3))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return self.b(self.a(x)) + self.cut.sum() + self.none.sum() + self.calls

    program = torch.export.export(Tied().eval(), (torch.rand(2, 4),))
    torch.export.save(program, tmp_path / "x.pt2")
    result = fairlead.export(tmp_path / "x.pt2", tmp_path / "x.onnx")
    assert result.discrepancies
    from fairlead.programs.file import load_program

    loaded = load_program(_core.read_pt2(str(tmp_path / "x.pt2")), "x.pt2")
    assert loaded.state_dict["a.weight"].data_ptr() == loaded.state_dict["b.weight"].data_ptr()
    x = torch.rand(2, 4)
    assert torch.equal(loaded.module()(x), torch.export.load(tmp_path / "x.pt2").module()(x))


def test_classes_that_a_tree_names_are_caches():
    from fairlead.tree.caches.state import CacheContext, put_together

    for data in (
        {"class": "subprocess:Popen", "list": ["true"]},
        {"object": "subprocess:Popen", "state": {}},
        {"class": "os:system", "list": ["true"]},
        {"config": "builtins:dict", "value": {}},
    ):
        with pytest.raises(TypeError, match="class_at"):
            put_together([], CacheContext(json.loads(json.dumps(data))))


# ---- texts ---------------------------------------------------------------------------------------------------


def one_line(err: str) -> str:
    lines = [line for line in err.splitlines() if not line.startswith("fairlead: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: [")
    return lines[0]


BAD_CONFIGS = {
    "no UTF-8": b'{"model_type": "\xff\xfe"}',
    "deep": b"[" * 100_000,
    "deep in an object": b'{"a":' * 100_000,
    "a list": b"[]",
    "a number": b"7",
    "architectures of numbers": {"architectures": [7]},
    "architectures that are no list": {"architectures": {"a": 1}},
    "an architecture with a surrogate": {"architectures": ["\ud800"]},
    "an architecture with an escape": {"architectures": ["\x1b[2J"]},
}


@pytest.mark.parametrize("kind", BAD_CONFIGS)
def test_a_bad_configuration_is_one_line(run, tmp_path, kind):
    source = checkpoints.bert(tmp_path / "source")
    config = tmp_path / "source" / "config.json"
    bad = BAD_CONFIGS[kind]
    config.write_bytes(bad if isinstance(bad, bytes) else json.dumps(json.loads(config.read_text()) | bad).encode())
    code, _, err = run("export", source, tmp_path / "out")
    assert code == 2
    assert "\x1b" not in one_line(err)


@pytest.mark.parametrize("kind", ["no UTF-8", "deep", "deep in an object", "a list", "a number"])
@pytest.mark.parametrize("name", ["generation.json", "tokenizer_config.json", "fairlead.json", "model.onnx"])
def test_a_bad_folder_is_one_line(run, tmp_path, kind, name):
    (tmp_path / name).write_bytes(BAD_CONFIGS[kind])
    for command in (["inspect", tmp_path], ["report", tmp_path], ["generate", tmp_path, "x"]):
        code, _, err = run(*command)
        assert code in (1, 2)
        one_line(err)


def onnx_file(path: Path, **metadata: str) -> Path:
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info("x\x1b[2J\u202e", 1, ["b\x07"])
    node = onnx.helper.make_node("Relu", [value.name], ["y"], name="n")
    for key, text in metadata.items():
        node.metadata_props.add(key=f"fairlead.{key}", value=text)
    out = onnx.helper.make_tensor_value_info("y", 1, ["b\x07"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [value], [out]), producer_name="p\x1b]0;t\x07")
    model.metadata_props.add(key="fairlead.contract", value="a\x1b[31m\x9b1m\nb")
    path.write_bytes(model.SerializeToString())
    return path


def test_what_is_printed_moves_no_cursor(run, tmp_path):
    code, out, _ = run("inspect", onnx_file(tmp_path / "x.onnx"))
    assert code == 0
    assert "x\\x1b[2J\\u202e" in out
    assert not set(out) & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_what_a_report_shows_turns_no_text_around(run, tmp_path):
    path = onnx_file(tmp_path / "x.onnx", module="m\u202e\x1b", source="s\u2066.py:1")
    assert run("report", path, "-o", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert not set(page) & set("\x1b\x07\x9b\u202e\u2066")
    data = page.partition('id="data0">')[2].partition("</script>")[0]
    assert not set(json.loads(data)["modules"]["name"][-1] + "".join(json.loads(data)["strings"])) & set("\x1b\u202e")


def test_a_report_says_nothing_about_files_elsewhere(run, tmp_path):
    onnx = pytest.importorskip("onnx")
    weight = onnx.TensorProto(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../../../../../../../etc/passwd")
    graph = onnx.helper.make_graph([], "g", [], [], [weight])
    (tmp_path / "x.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    (row,) = [f for f in _core.file_report(str(tmp_path / "x.onnx"))["files"] if f["name"]]
    assert (row["missing"], row["bytes"]) == (True, 0)


def test_nothing_is_written_over_a_device_or_a_pipe(run, tmp_path):
    os.mkfifo(tmp_path / "x.onnx")
    code, _, err = run("convert", GOLDEN / "mlp.pt2", tmp_path / "x.onnx", "--no-verify")
    assert code == 1
    assert "it is a device, a pipe or a socket" in one_line(err)


@pytest.mark.parametrize("place", ["/etc/passwd:1", "../../../../../../etc/passwd:1", f"{__file__}:1"])
def test_a_report_quotes_no_file_that_was_not_exported(run, tmp_path, place):
    path = onnx_file(tmp_path / "x.onnx", source=place, module="m")
    code, _, err = run("report", path, "-o", tmp_path / "page.html")
    assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    assert "root:x:" not in page
    assert "No command runs code from a file" not in page


def test_inputs_that_are_nested_without_end_are_one_error(tmp_path):
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for model in (torch.nn.Linear(2, 2).eval(), torch.nn.ReLU().eval()):
        with pytest.raises(fairlead.InvalidInput, match="nested some hundred levels deep at most"):
            fairlead.export(model, (torch.rand(1, 2), deep), tmp_path / "x.onnx")
