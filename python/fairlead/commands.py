"""The commands of `fairlead`, one function each: it parses, calls one function, and prints."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from typing import Any

import click

from fairlead import _core
from fairlead.printing import heading, progress, say, size_text, style, table
from fairlead.report.command import failures_reported, report, success_reported

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_core.__version__, prog_name="fairlead")
def fairlead() -> None:
    """Takes PyTorch models out of PyTorch, to ONNX, by experiment.

    \b
    Examples:
      fairlead demo
      fairlead export model.py:make model.onnx
      fairlead export torch.nn:Linear linear.onnx --config in_features=4 --config out_features=2 --inputs 3x4
      fairlead convert program.pt2 model.onnx
      fairlead inspect model.onnx
      fairlead report model.onnx
      fairlead doctor

    \b
    Exit codes: 0 done, 1 the model cannot be exported, 2 usage, 130 interrupted.
    """


fairlead.add_command(report)

# ---- export --------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("source")
@click.argument("output", type=click.Path(), default="model.onnx")
@click.option(
    "--config", "config", multiple=True, metavar="KEY=VALUE", help="Argument of the class or function. Repeat it."
)
@click.option(
    "--inputs", "inputs", multiple=True, metavar="[NAME=]DTYPE[SIZES]",
    help='An example input, such as "input_ids=int64[2,7]" or 3x4. Repeat it.',
)  # fmt: skip
@click.option(
    "--dim", "dims", multiple=True, metavar="INPUT.AXIS=NAME",
    help="Names an axis, or fixes it where NAME is its size. Repeat it. Others are found out.",
)  # fmt: skip
@click.option("--opset", type=int, default=None, help="ONNX opset; by default the one that ONNX Runtime runs best.")
@click.option(
    "--external-data", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
    help="Whether weights go to a file beside the model.",
)  # fmt: skip
@click.option("--no-verify", is_flag=True, help="Do not run the file in ONNX Runtime.")
@click.option("--strict", is_flag=True, help="An assumption about values is an error.")
@click.option(
    "--report/--no-report", "wants_report", default=None,
    help="Write report.html beside OUTPUT; by default only where the export fails.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json
def export(
    source, output, config, inputs, dims, opset, external_data, no_verify, strict, wants_report, quiet, as_json
) -> None:
    """Exports SOURCE to OUTPUT (model.onnx) and checks it at sizes that were not used to make it.

    SOURCE is MODULE:CLASS, made with --config and called with --inputs, or SCRIPT.py:FUNCTION, which returns
    (model, inputs). A Transformers class is made from its configuration, with random weights.

    \b
    Examples:
      fairlead export model.py:make model.onnx --dim x.0=batch
      fairlead export transformers:BertModel bert.onnx --config hidden_size=64 --config num_attention_heads=4 \\
        --config num_hidden_layers=2 --inputs "input_ids=int64[2,7]" --inputs "attention_mask=int64[2,7]"
    """
    with failures_reported(output, wants_report), progress(f"loading {source}", quiet) as show:
        from fairlead import model_source
        from fairlead.pipeline import DEFAULT_OPSET
        from fairlead.pipeline import export as run

        model, example = model_source.load(source, model_source.pairs("--config", config), list(inputs))
        result = run(
            model, example, output, dynamic_shapes=model_source.named_dims(model, example, dims),
            opset=opset or DEFAULT_OPSET, external_data=external_data, verify=not no_verify, strict=strict,
            progress=show,
        )  # fmt: skip
    success_reported(result, wants_report)
    if as_json:
        say(json.dumps(result_as_dict(result), indent=2))
        return
    print_result(result)


def result_as_dict(result) -> dict[str, Any]:
    return {
        "path": result.path,
        "nodes": result.nodes,
        "operators": result.operators,
        "opset": result.opset,
        "model_bytes": result.model_bytes,
        "external_bytes": result.external_bytes,
        "runs": result.runs,
        "timings": result.timings,
        "contract": dataclasses.asdict(result.contract),
        "discrepancies": result.discrepancies,
    }


def print_result(result) -> None:
    heading("Contract")
    for line in str(result.contract).splitlines():
        say(f"  {line}")
    heading("Times")
    table([(name, f"{seconds:.3f} s") for name, seconds in result.timings.items()])
    heading("Differences from PyTorch")
    if not result.discrepancies:
        say("  not verified")
    rows = []
    for row in result.discrepancies:
        at = ", ".join(f"{k} = {v}" for k, v in row["sizes"].items()) or "the example"
        rows.append((at, f"{row['scaled']:.1e}", f"in {row['output']}" if row["scaled"] else ""))
    table(rows)
    external = f" and {size_text(result.external_bytes)} in {result.path}.data" if result.external_bytes else ""
    written = f"{result.path}: {result.nodes} nodes, opset {result.opset}, {size_text(result.model_bytes)}{external}"
    say(f"{style('Written', bold=True, fg='green')} {written}")


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
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json
def convert(program, output, opset, external_data, no_verify, quiet, as_json) -> None:
    """Converts PROGRAM, a .pt2 file that torch.export.save wrote, to OUTPUT (PROGRAM with .onnx) and checks it.

    fairlead-convert does the same, without the check, on a machine that has no Python.

    \b
    Example:
      fairlead convert program.pt2 model.onnx --opset 21
    """
    with progress(f"loading {program}", quiet) as show:
        from fairlead.pipeline import DEFAULT_OPSET
        from fairlead.pipeline import export as run

        result = run(
            program, output or program.removesuffix(".pt2") + ".onnx", opset=opset or DEFAULT_OPSET,
            external_data=external_data, verify=not no_verify, progress=show,
        )  # fmt: skip
    if as_json:
        say(json.dumps(result_as_dict(result), indent=2))
        return
    print_result(result)


# ---- inspect -------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@as_json
def inspect(path, as_json) -> None:
    """Shows what is in an ONNX file: contract, inputs, outputs, operators, sizes. Needs no PyTorch.

    \b
    Examples:
      fairlead inspect model.onnx
      fairlead inspect model.onnx --json | jq .operators
    """
    summary = _core.read_summary(path)
    if as_json:
        say(json.dumps(summary, indent=2))
        return
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in summary["opsets"].items())
    heading(f"{path}: {size_text(summary['file_bytes'])}, written by {summary['producer'] or 'unknown'} "
            f"{summary['producer_version']}".rstrip() + f", opset {opsets}")  # fmt: skip
    for title in ("inputs", "outputs"):
        heading(title.capitalize())
        table([(value["name"], type_text(value)) for value in summary[title]])
    symbols = sorted(
        {d for v in summary["inputs"] for d in v["shape"] or () if isinstance(d, str) and d.isidentifier()}
    )
    heading("Symbols")
    say(f"  {', '.join(symbols) or 'none: every dimension is fixed'}")
    heading(f"Operators: {summary['nodes']} nodes")
    for name, count in sorted(summary["operators"].items(), key=lambda item: (-item[1], item[0])):
        say(f"  {count:6}  {name}")
    outside = f", {size_text(summary['external_bytes'])} of it in {', '.join(summary['external_files'])}"
    heading("Weights")
    inside = f"{summary['weights']} tensors, {size_text(summary['weight_bytes'])}"
    say(f"  {inside}{outside if summary['external_bytes'] else ''}")
    metadata = summary["metadata"]
    if "fairlead.contract" in metadata:
        heading("Contract")
        for line in metadata["fairlead.contract"].splitlines():
            say(f"  {line}")
        say(f"  Checked: {metadata.get('fairlead.checked', 'unknown')}")


def type_text(value: dict) -> str:
    shape = value["shape"]
    return f"{value['dtype'] or 'not a tensor'}[{', '.join('?' if d is None else str(d) for d in shape or ())}]"


# ---- doctor --------------------------------------------------------------------------------------------


@fairlead.command()
@as_json
def doctor(as_json) -> None:
    """Says what is installed, what works with it, and what to install. Exits with 1 where exports cannot be checked.

    \b
    Example:
      fairlead doctor
    """
    from fairlead.doctor import examine

    with progress("importing packages"):
        report = examine()
    if as_json:
        say(json.dumps(report, indent=2))
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
        say(f"Export: {answers[report['can_export']]}. Check in ONNX Runtime: {answers[report['can_verify']]}.")
    if not report["can_verify"]:
        raise click.exceptions.Exit(1)


# ---- demo ----------------------------------------------------------------------------------------------


@fairlead.command()
@click.argument("output", type=click.Path(), default="demo.onnx")
@as_json
def demo(output, as_json) -> None:
    """Exports a small built-in model to OUTPUT (demo.onnx): contract, time of each stage, differences.

    \b
    Examples:
      fairlead demo
      fairlead demo llama.onnx
    """
    with progress("importing PyTorch and Transformers") as show:
        start = time.perf_counter()
        from fairlead.demo import demo_model
        from fairlead.pipeline import export as run

        what, model, inputs = demo_model()
        imported = time.perf_counter() - start
        result = run(model, inputs, output, progress=show)
    if as_json:
        say(json.dumps(result_as_dict(result), indent=2))
        return
    say(f"{what} (imported and made in {imported:.1f} s)")
    print_result(result)
    say(f"Look at it: fairlead inspect {os.path.relpath(output)}")
