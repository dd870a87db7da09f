"""`fairlead generate`: text from an exported folder, in ONNX Runtime, as it is made."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from fairlead.base.plain_text import escaped
from fairlead.cli.printing import progress, say, say_json

LONGEST = 16 << 20  # letters of a prompt: beyond what any model has positions for


def given_prompt() -> str:
    """What standard input has; there may be none, or no end of it."""
    from fairlead._core import InvalidInput

    try:
        text = "" if sys.stdin is None else sys.stdin.read(LONGEST + 1)
    except OSError as error:
        raise InvalidInput(
            f"[generate] Expected a prompt on standard input, but it cannot be read: {error.strerror}."
        ) from error
    if len(text) > LONGEST:
        raise InvalidInput(
            f"[generate] Expected a prompt of {LONGEST:,} letters at most on standard input, got more. Shorten it."
        )
    return text


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("prompt")
@click.option("--max-new-tokens", type=click.IntRange(1), default=128, show_default=True, help="Tokens at most.")
@click.option("--greedy", is_flag=True, help="The most likely token, whatever generation_config.json says.")
@click.option("--temperature", type=float, default=None, help="Draws tokens; below 1 the likely ones more often.")
@click.option("--top-p", type=float, default=None, help="Draws among the likeliest tokens that have this share.")
@click.option("--top-k", type=int, default=None, help="Draws among this many of the likeliest tokens.")
@click.option("--seed", type=int, default=None, help="Draws the same tokens every time.")
@click.option("--chat", is_flag=True, help="PROMPT is a user's message, in the chat template of the folder.")
@click.option("--system", default=None, help="With --chat: the system message.")
@click.option("--json", "as_json", is_flag=True, help="Print text, tokens and times as JSON.")
def generate(
    folder: Any,
    prompt: Any,
    max_new_tokens: Any,
    greedy: Any,
    temperature: Any,
    top_p: Any,
    top_k: Any,
    seed: Any,
    chat: Any,
    system: Any,
    as_json: Any,
) -> None:
    """Continues PROMPT with the exported model in FOLDER, or answers it. Needs ONNX Runtime and tokenizers, no PyTorch.

    The text is printed as it is made. PROMPT - is read from standard input.

    \b
    Examples:
      fairlead generate out/ "The capital of France is"
      fairlead generate out/ "Write a haiku about rope." --chat --temperature 0.7 --top-p 0.9 --seed 1
      echo "Summarise: ..." | fairlead generate out/ - --max-new-tokens 64 --json
    """
    from fairlead._core import InvalidInput
    from fairlead.runtime.text import TextGenerator

    drawn = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "seed": seed}
    drawn = {name: value for name, value in drawn.items() if value is not None}
    if greedy and drawn:
        raise InvalidInput(f"[generate] Expected --greedy or --{next(iter(drawn)).replace('_', '-')}, got both.")
    settings = {"max_new_tokens": max_new_tokens, **drawn}
    if greedy or drawn:
        settings["do_sample"] = not greedy
    if prompt == "-":
        prompt = given_prompt()
    start = time.perf_counter()
    with progress(f"loading {folder}", quiet=as_json or sys.stderr is None or not sys.stderr.isatty()):
        text = TextGenerator(folder)
    loaded = time.perf_counter() - start
    if as_json:
        tokens = text.tokens(prompt, chat, system)
        start = time.perf_counter()
        new = [int(step[0]) for step in text.generator.stream([tokens], **settings)]
        seconds = time.perf_counter() - start
        answer = text.decoded(new)
        say_json({"text": answer, "tokens": new, "prompt_tokens": len(tokens), "load_seconds": loaded,
                        "seconds": seconds})  # fmt: skip
        return
    for piece in text.stream(prompt, chat=chat, system=system, **settings):
        # On a terminal a model's tokens are not to move the cursor; a pipe gets them as they are.
        click.echo(escaped(piece) if sys.stdout is not None and sys.stdout.isatty() else piece, nl=False)
    say()
