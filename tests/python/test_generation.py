"""export_for_generation and runtime.Generator: the same tokens as model.generate."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fairlead.exporters import OnnxConfig, OnnxExporter
from fairlead.runtime import Generator
from generation_models import MODELS, text
from untouched import names

from fairlead import Discrepancy, InvalidInput

STEPS = 32
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def generated(model, inputs, **more):
    more = {"max_new_tokens": STEPS, "do_sample": False, "pad_token_id": 0} | more
    with torch.no_grad():
        result = model.generate(**inputs, **more)
    return result.numpy() if isinstance(result, torch.Tensor) else result


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    model, inputs = MODELS["llama"]()
    parts = OnnxExporter().export_for_generation(model, inputs(1), OnnxConfig(output_path=folder))
    return model, inputs, parts, folder


@pytest.mark.parametrize("name", MODELS)
def test_tokens_equal_those_of_generate(name, tmp_path):
    model, inputs = MODELS[name]()
    OnnxExporter().export_for_generation(model, inputs(1), OnnxConfig(output_path=tmp_path))
    generator = Generator.from_folder(tmp_path)
    for batch in (1, 3):
        arguments = inputs(batch)
        expected = generated(model, arguments, return_dict_in_generate=True, output_scores=True)
        best = torch.stack(expected.scores).topk(2).values
        # Files agree with eager to 1e-4: tokens that are equal are no luck.
        assert (best[..., 0] - best[..., 1]).min() > 1e-3
        got = generator.generate(**{k: v.numpy() for k, v in arguments.items()}, max_new_tokens=STEPS)
        np.testing.assert_array_equal(got, expected.sequences.numpy(), err_msg=f"{name}, batch {batch}")
        assert len(np.unique(got[:, -STEPS:])) > 3  # the model says something
        for seen in ("pixel_values", "input_features"):
            if seen in arguments:
                other = generator.generate(**(arguments | {seen: arguments[seen].flip(-1) * -3}), max_new_tokens=STEPS)
                assert not np.array_equal(other[:, -STEPS:], got[:, -STEPS:])  # and looks at what it is given


@pytest.mark.parametrize("name", ["llava", "qwen3_vl"])
def test_prompts_without_images_and_with_several(name, tmp_path):
    model, inputs = MODELS[name]()
    OnnxExporter().export_for_generation(model, inputs(1), OnnxConfig(output_path=tmp_path))
    generator = Generator.from_folder(tmp_path)
    words = {k: v for k, v in text(3).items() if k in ("input_ids", "attention_mask")}
    np.testing.assert_array_equal(
        generator.generate(**words, max_new_tokens=8), generated(model, words, max_new_tokens=8)
    )
    one = inputs(2)
    twice = {k: torch.cat([v, v], 1) if v.shape[:1] == (2,) and v.dim() == 2 and k != "image_grid_thw" else v
             for k, v in one.items() if not k.startswith(("pixel", "image"))}  # fmt: skip
    twice |= {k: torch.cat([v, v]) for k, v in one.items() if k.startswith(("pixel", "image"))}
    if "image_grid_thw" in twice:  # in the order of the text: both images of the first row, then those of the second
        sizes, patches = one["image_grid_thw"], one["pixel_values"].split(one["image_grid_thw"].prod(1).tolist())
        twice["image_grid_thw"] = sizes[[0, 0, 1, 1]]
        twice["pixel_values"] = torch.cat([patches[k] for k in (0, 0, 1, 1)])
    np.testing.assert_array_equal(
        generator.generate(**twice, max_new_tokens=8), generated(model, twice, max_new_tokens=8)
    )


def test_one_file_serves_prompt_and_decoding(llama):
    _, _, parts, folder = llama
    assert set(parts) == {"prefill", "decode"}
    assert parts["prefill"] is parts["decode"]
    assert names(folder) == ["generation.json", "model.onnx", "model.onnx.*.data"]
    shapes = {i["name"]: i["shape"] for i in parts["decode"].contract.inputs}
    assert shapes["attention_mask"] == ["batch", "sequence + past"]


def test_the_sample_is_left_alone_and_freezes_nothing(tmp_path):
    model, _ = MODELS["llama"]()
    sample = {"input_ids": torch.tensor([[5]]), "attention_mask": torch.ones(1, 1, dtype=torch.int64)}
    before = {k: v.clone() for k, v in sample.items()}
    parts = OnnxExporter().export_for_generation(model, sample, {"output_path": tmp_path})
    assert all(torch.equal(sample[k], before[k]) for k in before)
    assert not parts["decode"].contract.fixed or all(
        f["name"].startswith("past_key_values") and f["axis"] in (1, 3) for f in parts["decode"].contract.fixed
    )
    assert "attention_mask" in [i["name"] for i in parts["decode"].contract.inputs]


def test_prompts_shorter_than_a_state(tmp_path):
    model, _ = MODELS["mamba2"]()
    OnnxExporter().export_for_generation(model, {"input_ids": torch.tensor([[5]])}, OnnxConfig(output_path=tmp_path))
    generator = Generator.from_folder(tmp_path)
    for length in (1, 2, 5):
        prompt = {"input_ids": torch.arange(5, 5 + length)[None], "attention_mask": torch.ones(1, length).long()}
        expected = generated(model, prompt, max_new_tokens=6)
        np.testing.assert_array_equal(generator.generate(**prompt, max_new_tokens=6), expected)


def test_streaming_callbacks_and_lists_of_prompts(llama):
    _, _, parts, _ = llama
    generator = Generator(parts)
    prompts = [[5, 6, 7, 8], [9, 10]]
    whole = generator.generate(prompts, max_new_tokens=6)
    steps = list(generator.stream(prompts, max_new_tokens=6))
    np.testing.assert_array_equal(np.stack(steps, 1), whole[:, 4:])
    seen = []
    generator.generate(prompts, max_new_tokens=6, callback=seen.append)
    np.testing.assert_array_equal(np.stack(seen, 1), whole[:, 4:])
    alone = generator.generate([[9, 10]], max_new_tokens=6)
    np.testing.assert_array_equal(alone[0, 2:], whole[1, 4:])  # padding changes nothing


def test_end_and_padding_as_generate_does(llama):
    model, inputs, parts, _ = llama
    generator = Generator(parts)
    arguments = inputs(3)
    free = generated(model, arguments)
    end = int(free[0, -STEPS + 4])  # the first row ends after five tokens
    expected = generated(model, arguments, eos_token_id=end)
    got = generator.generate(**arguments, max_new_tokens=STEPS, eos_token_id=end)
    np.testing.assert_array_equal(got, expected)
    assert (got[0, -STEPS + 5 :] == 0).all()


@pytest.mark.parametrize(
    "rules",
    [
        {"repetition_penalty": 1.7},
        {"no_repeat_ngram_size": 2},
        {"suppress_tokens": list(range(20, 60))},
        {"begin_suppress_tokens": list(range(20, 80))},
        {"forced_eos_token_id": 7},
        {"eos_token_id": list(range(50)), "min_new_tokens": 9},
    ],
)
def test_rules_of_a_generation_config(rules, llama):
    model, inputs, parts, _ = llama
    arguments = inputs(3)
    expected = generated(model, arguments, **rules)
    np.testing.assert_array_equal(Generator(parts).generate(**arguments, max_new_tokens=STEPS, **rules), expected)


def test_sampling_follows_the_seed_and_the_limits(llama):
    _, inputs, parts, _ = llama
    generator = Generator(parts)
    sampled = {"max_new_tokens": STEPS, "do_sample": True, "temperature": 2.0}
    first = generator.generate(**inputs(3), **sampled, seed=3)
    np.testing.assert_array_equal(first, generator.generate(**inputs(3), **sampled, seed=3))
    assert not np.array_equal(first, generator.generate(**inputs(3), **sampled, seed=4))
    greedy = generator.generate(**inputs(3), max_new_tokens=STEPS)
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        np.testing.assert_array_equal(generator.generate(**inputs(3), **(sampled | narrow)), greedy)


def test_draws_follow_the_probabilities():
    from fairlead.runtime.sampling import Chooser, Settings

    choose = Chooser(Settings(do_sample=True, seed=0, top_k=3), 1, 1)
    logits = np.log(np.tile(np.array([[0.4, 0.3, 0.2, 0.1]]), (20000, 1)))
    counts = np.bincount(choose(logits, np.zeros((20000, 1), np.int64)), minlength=4) / 20000
    # Four standard deviations of a share of 20000 draws are below 0.015.
    np.testing.assert_allclose(counts, [4 / 9, 3 / 9, 2 / 9, 0], atol=0.015)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_of_16_bits(dtype):
    model, inputs = MODELS["llama"]()
    with torch.no_grad():
        for weight in model.parameters():  # as trained ones are: wide weights leave no digit of 16 bits
            weight *= 0.2 if weight.dim() > 1 else 1
    model = model.to(dtype)
    parts = OnnxExporter().export_for_generation(model, inputs(1))  # without a path: in a folder of their own
    got = Generator(parts).generate(**inputs(3), max_new_tokens=4)
    # The runtime rounds at other places than eager: the first token is the same, later ones may part.
    np.testing.assert_array_equal(got[:, :10], generated(model, inputs(3), max_new_tokens=4)[:, :10])


def test_the_runtime_needs_no_torch(llama):
    *_, folder = llama
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        assert name.partition('.')[0] not in ('torch', 'transformers'), name\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from fairlead.runtime import Generator\n"
        f"print(Generator.from_folder({str(folder)!r}).generate([[5, 6]], max_new_tokens=3).shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(1, 5)", done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("generate_*.py")), ids=lambda path: path.stem)
def test_examples_run_as_they_are_printed(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("the same tokens as model.generate\n")


def test_an_error_in_a_part_says_where_and_keeps_what_is_known(tmp_path, monkeypatch):
    def broken(self, feeds):
        raise RuntimeError("no kernel")

    monkeypatch.setattr("fairlead.verify.runtime_check.OnnxSession.run", broken)
    model, inputs = MODELS["llama"]()
    with pytest.raises(
        Discrepancy, match=r"^\[export_for_generation\] In the part \w+: Expected ONNX Runtime"
    ) as caught:
        OnnxExporter().export_for_generation(model, inputs(1), OnnxConfig(output_path=tmp_path / "out"))
    facts = caught.value.facts
    assert ".fairlead-" not in f"{caught.value} {facts['path']}", "users are told the name they gave"
    assert facts["path"].startswith(str(tmp_path / "out"))
    assert facts["differences"][-1]["problem"] == "cannot be computed: no kernel"


def test_bad_requests_are_one_line(llama, tmp_path):
    model, _, parts, _ = llama
    generator = Generator(parts)
    right = np.array([[5, 6, 0]]), np.array([[1, 1, 0]])
    for call, words in (
        (lambda: Generator.from_folder(tmp_path), "no such file"),
        (lambda: Generator.from_folder(tmp_path / "none"), "no such folder"),
        (lambda: Generator(7), "got int"),
        (lambda: generator.generate(), "Expected input_ids"),
        (lambda: generator.generate([["a"]]), "as integers"),
        (lambda: generator.generate(*right), "padded on the left"),
        (lambda: generator.generate([[1, 2]], [[1]]), r"\[1, 2\], got \[1, 1\]"),
        (lambda: generator.generate([[1, 2]], temperatur=1), "temperatur"),
        (lambda: generator.generate([[1, 2]], num_beams=4), "num_beams=1"),
        (lambda: generator.generate([[1, 2]], do_sample=True, top_p=0), "top_p"),
        (lambda: OnnxExporter().export_for_generation(torch.nn.Linear(2, 2), {}), "with generate"),
        (lambda: OnnxExporter().export_for_generation(model, [1]), "as a dict"),
        (lambda: OnnxExporter().export_for_generation(model, {"input_ids": 5}), "input_ids as a tensor"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
