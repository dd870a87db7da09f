"""Corrections of an exported program before a backend takes it: by node, or of the program as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NodeFix = Callable[[torch.fx.GraphModule, torch.fx.Node], bool]
ProgramFix = Callable[[Any], None]

_node_fixes: dict[str, list[NodeFix]] = {}
_program_fixes: dict[str, list[ProgramFix]] = {}


def register_fx_node_fix(backend: str) -> Callable[[NodeFix], NodeFix]:
    """Adds the decorated `fix(graph_module, node) -> bool`; True says that the node is dealt with."""

    def add(fix: NodeFix) -> NodeFix:
        _node_fixes.setdefault(backend, []).append(fix)
        return fix

    return add


def register_fx_program_fix(backend: str) -> Callable[[ProgramFix], ProgramFix]:
    """Adds the decorated `fix(exported_program) -> None`, for what needs signature, constraints or weights."""

    def add(fix: ProgramFix) -> ProgramFix:
        _program_fixes.setdefault(backend, []).append(fix)
        return fix

    return add


def unregister_fx_fix(backend: str, fix: NodeFix | ProgramFix) -> None:
    """Takes a fix out again."""
    _node_fixes[backend] = [known for known in _node_fixes.get(backend, []) if known is not fix]
    _program_fixes[backend] = [known for known in _program_fixes.get(backend, []) if known is not fix]


def apply_fx_node_fixes(backend: str, graph_module: torch.fx.GraphModule) -> int:
    """Every call of the graph and of the graphs inside it is offered to the fixes in order, until one deals with it.

    Nodes that nothing uses any more are removed. Returns how many nodes were dealt with.
    """
    fixes = _node_fixes.get(backend, [])
    done = 0
    for module in graph_module.modules() if fixes else ():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        before = done
        for node in list(module.graph.nodes):
            # A fix may have erased a node further on.
            if node.op == "call_function" and not node._erased:
                done += any(fix(module, node) for fix in fixes)
        if done > before:
            module.graph.eliminate_dead_code()
            module.graph.lint()
            module.recompile()
    return done


def apply_fx_program_fixes(backend: str, exported_program: Any) -> int:
    """The fixes of a program in order, in place. Returns how many there were."""
    fixes = _program_fixes.get(backend, [])
    for fix in fixes:
        fix(exported_program)
    return len(fixes)
