"""`fairlead generate`, completion: from exported files alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import checkpoints
import pytest
import torch
from fairlead.runtime.text import TextGenerator

import fairlead

transformers = pytest.importorskip("transformers", minversion="5.0")
PROMPT = "the lighthouse keeper counted"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return checkpoints.llama(tmp_path_factory.mktemp("llama") / "source", checkpoints.TEMPLATE)


@pytest.fixture(scope="module")
def folder(source):
    return fairlead.export_checkpoint(source, source.parent / "out").folder


def eager(source, chat: bool, **settings) -> list[int]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    if chat:
        messages = [{"role": "user", "content": PROMPT}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = torch.tensor([tokenizer(text, add_special_tokens=False).input_ids])
    else:
        ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    model = transformers.LlamaForCausalLM.from_pretrained(source).eval()
    with torch.no_grad():
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **settings)
    return made[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("chat", [True, False])
def test_greedy_tokens_are_those_of_pytorch(run, source, folder, chat):
    words = ["generate", folder, PROMPT, "--max-new-tokens", 24, "--greedy", "--json", *(["--chat"] if chat else [])]
    code, out, err = run(*words)
    assert code == 0, err
    assert json.loads(out)["tokens"] == eager(source, chat, max_new_tokens=24)


def test_the_pieces_that_are_streamed_make_the_text(run, source, folder):
    code, out, err = run("generate", folder, PROMPT, "--max-new-tokens", 8)
    assert code == 0, err
    tokens = eager(source, False, max_new_tokens=8)
    assert out.strip() == transformers.AutoTokenizer.from_pretrained(source).decode(tokens, skip_special_tokens=True)
    pieces = list(TextGenerator(folder).stream(PROMPT, max_new_tokens=8))
    assert len(pieces) > 1
    assert "".join(pieces) == out[:-1]


def test_draws_follow_the_seed(run, folder):
    def drawn(seed):
        words = ["--temperature", 1.5, "--top-p", 0.95, "--seed", seed, "--json", "--max-new-tokens", 12]
        return json.loads(run("generate", folder, PROMPT, *words)[1])["tokens"]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_an_encoder_decoder_answers_too(run, tmp_path):
    source = checkpoints.t5(tmp_path / "source")
    fairlead.export_checkpoint(source, tmp_path / "out")
    code, out, err = run("generate", tmp_path / "out", PROMPT, "--max-new-tokens", 10, "--json")
    assert code == 0, err
    model = transformers.T5ForConditionalGeneration.from_pretrained(source).eval()
    ids = transformers.AutoTokenizer.from_pretrained(source)(PROMPT, return_tensors="pt").input_ids
    expected = model.generate(ids, max_new_tokens=10, do_sample=False)[0, 1:].tolist()
    assert json.loads(out)["tokens"] == expected


def test_neither_pytorch_nor_transformers_is_needed(folder):
    block = (
        "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None; "
        "from fairlead.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", block, "generate", folder, "-", "--max-new-tokens", "3", "--json"],
        input=PROMPT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["tokens"]) == 3


def test_wrong_words_are_one_line(run, folder, source, tmp_path):
    fairlead.export_checkpoint(checkpoints.bert(tmp_path / "bert"), tmp_path / "out")
    plain = tmp_path / "plain"
    shutil.copytree(folder, plain)
    (plain / "chat_template.jinja").unlink()
    for words, text in [
        ([folder, PROMPT, "--greedy", "--seed", 1], "Expected --greedy or --seed, got both."),
        ([folder, PROMPT, "--temperature", 0], "Expected temperature more than 0"),
        ([folder, PROMPT, "--top-p", 2], "Expected top_p in (0, 1], got 2.0."),
        ([folder, ""], "Expected a prompt, got one without a token."),
        ([folder, PROMPT, "--system", "Be brief."], "Expected a system message with --chat alone, got one without."),
        ([plain, PROMPT, "--chat"], f"Expected a chat template in '{plain}', got none. Leave --chat out"),
        ([folder, "the rain " * 100_001], "tokens, as many as config.json says that the model has positions"),
        ([tmp_path / "out", PROMPT], "generation.json"),
        ([source, PROMPT], "generation.json"),
        ([tmp_path / "none", PROMPT], "does not exist"),
    ]:
        code, _, err = run("generate", *words)
        assert (code, "Traceback" in err) == (2, False), err
        assert text in err


def test_a_prompt_without_end_is_one_line(folder):
    with open("/dev/zero", "rb") as zeros:
        words = [sys.executable, "-m", "fairlead", "generate", folder, "-"]
        done = subprocess.run(words, stdin=zeros, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "a prompt of 16,777,216 letters at most on standard input, got more" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_every_shell(run, shell):
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "_FAIRLEAD_COMPLETE" in out


def test_onnxruntime_genai_runs_the_folder(source, folder):
    genai = pytest.importorskip("onnxruntime_genai")
    ids = TextGenerator(folder).tokens(PROMPT)
    model = genai.Model(str(folder))
    settings = genai.GeneratorParams(model)
    settings.set_search_options(max_length=len(ids) + 12, do_sample=False)
    generator = genai.Generator(model, settings)
    generator.append_tokens(ids)
    while not generator.is_done():
        generator.generate_next_token()
    got = [int(token) for token in generator.get_sequence(0)][len(ids) :]
    assert got == eager(source, False, max_new_tokens=12)
