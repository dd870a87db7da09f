"""What to try after a failed export: steps by kind of error, with code that names the user's own inputs."""

from __future__ import annotations

from typing import Any


def advice_for(error: Exception, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps in the order to try them: text, and code where there is some."""
    return ADVICE.get(type(error).__name__, nothing)(facts | {"details": getattr(error, "details", ())})


def nothing(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [step("Do what the sentence above says.")]


def step(text: str, code: str = "") -> dict[str, Any]:
    return {"text": text, "code": code}


def moved_dims(facts: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """(input, axis, size in one run, size in the other) of dims that differ between the runs that parted."""
    sizes = (facts.get("parting") or {}).get("sizes", [])
    return [
        (s["name"], axis, a, b)
        for s in sizes
        for axis, (a, b) in enumerate(zip(s["first"], s["second"], strict=False))
        if a != b
    ]


def diverged(facts: dict[str, Any]) -> list[dict[str, Any]]:
    if any(d["kind"] == "assumption" for d in facts["details"]):
        return [
            step(
                "Export without strict: the contract then lists what was assumed, and the file is checked at sizes "
                "and values that were not recorded.",
                'fairlead.export(model, inputs, "model.onnx")',
            ),
            step("Or write the model without reading values at the lines above: torch.where instead of if."),
        ]
    steps = []
    moved = moved_dims(facts)
    if moved:
        name, axis, a, b = moved[0]
        where = f"axis {axis} of {name}"
        steps.append(
            step(
                f"Let the sizes decide: without dynamic_shapes, Fairlead fixes {where} by itself, says so in the "
                "contract, and ONNX Runtime refuses other sizes.",
                'fairlead.export(model, inputs, "model.onnx")',
            )
        )
        bound = f"max={a}" if b > a else f"min={a}"
        steps.append(
            step(
                f"Give bounds between which the model does not branch: it ran at {a} and took another way at {b}.",
                f'from torch.export import Dim\n\nfairlead.export(\n    model, inputs, "model.onnx",\n'
                f'    dynamic_shapes={{{name!r}: {{{axis}: Dim("n", {bound})}}}},\n)',
            )
        )
    else:
        steps.append(step("Leave the dimension out of dynamic_shapes: the model does not run at other sizes of it."))
    steps.append(
        step(
            "Or write the model without the branch: torch.where for a choice by value, one form "
            "that serves every size, or two exports, one for each side."
        )
    )
    return steps


def unsolved(facts: dict[str, Any]) -> list[dict[str, Any]]:
    names = ", ".join(s["name"] for s in facts.get("symbols", []))
    return [
        step(
            "Leave dynamic_shapes and strict out: Fairlead then fixes the dimension that the number depends on and "
            "exports the rest.",
            'fairlead.export(model, inputs, "model.onnx")',
        ),
        step(f"Or fix one of the dimensions yourself{f' (varied: {names})' if names else ''} and export again."),
        step(
            "Or compute the number with torch operators from shapes at the lines above, so that it can be written into "
            "the file as arithmetic."
        ),
    ]


def unsupported(facts: dict[str, Any]) -> list[dict[str, Any]]:
    name = next((d["operator"] for d in facts["details"]), "aten.name.overload")
    return [
        step(
            "Give the operator an ONNX form of your own: docs/custom_operators.md says how.",
            f'@fairlead.lowerings.register_lowering("{name}")\n'
            'def lower(b):\n    b.result(b.op("Identity", b.input(0)))  # its form instead of Identity',
        ),
        step("Or replace it in the model at the lines above by operators of docs/operators.md."),
    ]


def discrepancy(facts: dict[str, Any]) -> list[dict[str, Any]]:
    if any(d["kind"] == "random" for d in facts["details"]):
        return [
            step("Pass what the model draws as an input, where its forward takes one (noise)."),
            step("Or let the file draw anew at each run; of what it draws, shapes and types are checked.",
                 'fairlead.export(model, inputs, "model.onnx", allow_random=True)'),
        ]  # fmt: skip
    return [
        step("Look at the calls above: a difference at one size only means a branch or a wrong size, one at every call "
             "an operator that computes something else."),
        step("Where the model is in half precision or its sums are long, a wider tolerance may be right.",
             'fairlead.export(model, inputs, "model.onnx", tolerance=1e-3)'),
        step("To look at the file itself, write it unverified, and please report what you find.",
             'fairlead.export(model, inputs, "model.onnx", verify=False)'),
    ]  # fmt: skip


def internal(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [step("This is a fault in Fairlead: please report it with the sentence above and the versions below.")]


ADVICE = {
    "Diverged": diverged,
    "Unsolved": unsolved,
    "Unsupported": unsupported,
    "Discrepancy": discrepancy,
    "InternalError": internal,
}
