"""That a program of torch.export from a file is data: what PyTorch would run of it as Python is refused.

PyTorch's reader takes a program for trusted. It evaluates expressions of sizes and guards as Python, writes the names
of values into source code that it executes, imports the modules that trees of inputs name, and calls whatever attribute
of `torch` a node asks for. Before it reads one that a stranger made, every text of it is looked at:

1. Names of values are identifiers; names of weights and other texts have no character that ends a quotation.
2. Expressions and guards are sums, products, comparisons and calls of known functions over names and numbers.
3. Operators are those of the ATen and prims libraries, those with a lowering, arithmetic of sizes; none reads files.
4. Trees of inputs are of plain containers and of classes of Transformers.
5. Remarks on nodes (what they were made from) are dropped, but for the module and the line.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any

from fairlead import _core

MOST_NESTING = 200
PLAIN = re.compile(r"[\w.\-+/:#@ ,<>|*&~!?%$]*")  # nothing that ends a quotation, a call or a line
WORD = re.compile(r"[\w.+\-]*")
RESERVED = {"self", "torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree"}  # of the code that is made
KEPT_REMARKS = ("nn_module_stack", "stack_trace")

OPERATORS = re.compile(r"torch\.ops\.(aten|prims)\.\w+\.\w+")
FILE_OPERATORS = ("torch.ops.aten.from_file", "torch.ops.aten.save", "torch.ops.aten.load")
CONTROL = {
    f"torch.ops.higher_order.{name}"
    for name in (
        "cond", "while_loop", "scan", "map_impl", "wrap_with_set_grad_enabled", "wrap_with_autocast", "invoke_subgraph",
    )
}  # fmt: skip
ARITHMETIC = {
    *(f"_operator.{name}" for name in (
        "eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "mul", "add", "sub", "floordiv", "mod", "pow", "truediv",
        "and_", "or_", "lshift", "rshift", "getitem",
    )),
    *(f"torch.sym_{name}" for name in ("not", "int", "float", "ite", "max", "min", "sqrt", "sum")),
    "math.trunc", "math.floor", "math.ceil",
}  # fmt: skip

# Of sympy and torch.utils._sympy.functions: they make expressions and nothing else.
FUNCTIONS = {
    "Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Max", "Min", "Abs", "floor", "ceiling", "Mod",
    "PythonMod", "And", "Or", "Not", "Eq", "Equality", "Ne", "Unequality", "Lt", "StrictLessThan", "Le", "LessThan",
    "Gt", "StrictGreaterThan", "Ge", "GreaterThan", "FloorDiv", "ModularIndexing", "Where", "CleanDiv", "CeilToInt",
    "FloorToInt", "CeilDiv", "LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv",
    "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat",
    "Identity", "cast_symbool_to_symint_guardless", "int", "float", "bool", "min", "max", "abs", "round",
}  # fmt: skip
METHODS = {"size", "stride", "storage_offset", "dim", "numel", "item"}
MODULE_FUNCTIONS = {
    "math": {"floor", "ceil", "trunc", "sqrt", "log2", "exp", "pow", "isnan", "inf", "nan"},
    "torch": {"sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"},
}
MADE_OF = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Subscript,
    ast.Attribute, ast.keyword, ast.Load, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp,
)  # fmt: skip

CONTAINERS = {"builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", "collections.deque",
              "collections.namedtuple", None}  # fmt: skip


def checked(program: bytes, where: str) -> dict[str, Any]:
    """The JSON of a program, looked at as above. Throws InvalidInput with the text that is not plain data."""
    try:
        found: dict[str, Any] = json.loads(program)
    except (ValueError, RecursionError) as error:
        raise _core.ParseError(f"[pt2] Expected a program as JSON, got: {error} ({where}).") from None
    Check(where).program(found)
    return found


class Check:
    def __init__(self, where: str):
        self.where = where
        # Keys decide how a text is read; whatever has no row has to be plain.
        self.texts: dict[str, Callable[[str], None]] = {
            "expr_str": self.expression, "guards_code": lambda text: None, "target": self.operator,
            "as_operator": self.operator, "name": self.identifier, "as_name": self.identifier,
            "forward_arg_names": self.identifier, "user_input_name": self.identifier, "in_spec": self.tree,
            "out_spec": self.tree,
        }  # fmt: skip

    def refuse(self, what: str, text: Any) -> None:
        shown = repr(text if isinstance(text, str) else str(text))
        raise _core.InvalidInput(
            f"[pt2] Expected {what} in the program, got {shown[:120]} ({self.where}), which PyTorch would run as code. "
            "Nothing was run. Convert it with verify=False, or load it yourself where you trust it."
        )

    def program(self, program: Any) -> None:
        if not isinstance(program, dict):
            self.refuse("an object", program)
        for guard in program.get("guards_code") or ():
            self.expression(guard, "a comparison of sizes")
        self.walk(program, "", 0)

    # Texts that a node is given (`as_string`: the words of an assertion) are written as literals and may be any.
    def walk(self, value: Any, key: str, depth: int, in_node: bool = False) -> None:
        if depth > MOST_NESTING:
            self.refuse(f"at most {MOST_NESTING} levels", key)
        if isinstance(value, dict):
            self.keys(value, key)
            for name, item in list(value.items()):
                if name == "metadata" and isinstance(item, dict):
                    self.remarks(item)
                else:
                    self.walk(item, name, depth + 1, in_node or name == "nodes")
        elif isinstance(value, list):
            for item in value:
                self.walk(item, key, depth + 1, in_node)
        elif isinstance(value, str) and not (in_node and key in ("as_string", "as_strings")):
            self.texts.get(key, self.plain)(value)

    def keys(self, value: dict[str, Any], key: str) -> None:
        named = key.endswith("_values")  # tensor_values, sym_int_values, ...: by the name of a value
        for name in value:
            self.value_name(name) if named else self.plain(name)
        if isinstance(made := value.get("name"), str) and "target" in value:
            self.value_name(made)

    def remarks(self, metadata: dict[str, Any]) -> None:
        for name in list(metadata):
            if name not in KEPT_REMARKS or not isinstance(metadata[name], str):
                del metadata[name]

    def plain(self, text: str) -> None:
        if not PLAIN.fullmatch(text):
            self.refuse("plain texts", text)

    def identifier(self, text: str) -> None:
        if text and (not text.isidentifier() or keyword.iskeyword(text) or text.startswith("__")):
            self.refuse("identifiers as names", text)

    def value_name(self, text: str) -> None:
        self.identifier(text)
        if text in RESERVED:
            self.refuse("names of its own for values", text)

    def operator(self, text: str) -> None:
        if text in CONTROL or text in ARITHMETIC:
            return
        if OPERATORS.fullmatch(text) and not text.startswith(FILE_OPERATORS):
            return
        if re.fullmatch(r"torch\.ops\.\w+\.\w+\.\w+", text) and text.removeprefix("torch.ops.") in lowered():
            return
        self.refuse("operators of PyTorch", text)

    def expression(self, text: Any, what: str = "an expression of sizes") -> None:
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            self.refuse(what, text)
        for node in ast.walk(tree):
            if not self.harmless(node):
                self.refuse(what, text)

    def harmless(self, node: ast.AST) -> bool:
        if not isinstance(node, MADE_OF):
            return False
        if isinstance(node, ast.Constant):
            return WORD.fullmatch(node.value) is not None if isinstance(node.value, str) else True
        if isinstance(node, ast.Name):
            return not node.id.startswith("__")
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in MODULE_FUNCTIONS:
                return node.attr in MODULE_FUNCTIONS[node.value.id]
            return node.attr in METHODS or node.attr == "shape"
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name):
                return function.id in FUNCTIONS
            return isinstance(function, ast.Attribute) and (
                function.attr in METHODS
                or (isinstance(function.value, ast.Name) and function.value.id in MODULE_FUNCTIONS)
            )
        return True

    def tree(self, text: str) -> None:
        """[protocol, {"type", "context", "children_spec"}]; contexts are JSON in text."""
        try:
            for spec in specs(json.loads(text)):
                kind = spec.get("type")
                if kind not in CONTAINERS and not (isinstance(kind, str) and kind.startswith("transformers.")):
                    self.refuse("trees of containers and of Transformers' classes", kind)
                self.context(spec.get("context"), 0)
        except (ValueError, AttributeError, TypeError, RecursionError):
            self.refuse("a tree of inputs", text)

    def context(self, value: Any, depth: int) -> None:
        if depth > MOST_NESTING:
            self.refuse(f"at most {MOST_NESTING} levels", value)
        if isinstance(value, str):
            if value[:1] in ("[", "{", '"'):
                return self.context(json.loads(value), depth + 1)
            return self.plain(value)
        if isinstance(value, dict):
            if "__enum__" in value or "default_factory_module" in value:
                self.refuse("plain containers", value)
            for name, item in value.items():
                self.plain(name)
                self.context(item, depth + 1)
        if isinstance(value, list):
            for item in value:
                self.context(item, depth + 1)
        return None


def specs(loaded: Any) -> Iterable[dict[str, Any]]:
    rest = [loaded[1]]
    while rest:
        spec = rest.pop()
        rest += spec["children_spec"]
        yield spec


def lowered() -> set[str]:
    """Operators with a lowering, those that were registered among them."""
    return {name for name, *_ in _core.operator_rows()}
