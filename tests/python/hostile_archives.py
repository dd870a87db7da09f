"""Files that try to run code when they are read: each leaves a sentinel where it succeeds."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoints


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, sentinel: Path):
        self.sentinel = sentinel

    def __reduce__(self):
        return (open, (str(self.sentinel), "w"))


def python(sentinel: Path) -> str:
    """Code of a module that a checkpoint brings, whatever class it is asked for."""
    return f"open({str(sentinel)!r}, 'w').close()\n\ndef __getattr__(name):\n    return type(name, (), {{}})\n"


def expression(sentinel: Path) -> str:
    """The same as an expression."""
    return f"open({str(sentinel)!r}, 'w')"


# ---- checkpoint folders ----------------------------------------------------------------------------------


def edit(path: Path, **settings: Any) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | settings))


def folder(at: Path, sentinel: Path) -> Path:
    """A checkpoint that works, with every file in it that code could hide in."""
    checkpoints.bert(at)
    (at / "evil.py").write_text(python(sentinel))
    for name in ("torch.py", "transformers.py", "json.py", "numpy.py", "sitecustomize.py", "setup.py"):
        (at / name).write_text(python(sentinel))
    (at / "custom_generate").mkdir()
    (at / "custom_generate" / "generate.py").write_text(python(sentinel) + "\ndef generate(*a, **k):\n    pass\n")
    for name in ("optimizer.pt", "training_args.bin", "vocab.pkl", "last.ckpt", "model.pth", "scheduler.pickle"):
        (at / name).write_bytes(pickle.dumps(Touch(sentinel)))
    classes = "''.__class__.__mro__[1].__subclasses__()"
    code = f"{{% for c in {classes} %}}{{{{ c.__init__.__globals__['sys'].exit(9) }}}}{{% endfor %}}"
    (at / "chat_template.jinja").write_text(code)
    return at


def auto_map_in_config(at: Path) -> None:
    edit(at / "config.json", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"})


def own_model_type(at: Path) -> None:
    edit(at / "config.json", model_type="evil", architectures=["EvilModel"],
         auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.EvilModel"})  # fmt: skip


def own_architecture(at: Path) -> None:
    edit(at / "config.json", architectures=["EvilModel"], auto_map={"AutoModel": "evil.EvilModel"})


def auto_map_in_tokenizer(at: Path) -> None:
    edit(at / "tokenizer_config.json", tokenizer_class="EvilTokenizer",
         auto_map={"AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizerFast"]})  # fmt: skip


def auto_map_in_processor(at: Path) -> None:
    for name in ("preprocessor_config.json", "processor_config.json"):
        edit(at / name, processor_class="EvilProcessor", image_processor_type="EvilImageProcessor",
             auto_map={"AutoProcessor": "evil.EvilProcessor", "AutoImageProcessor": "evil.EvilImageProcessor",
                       "AutoFeatureExtractor": "evil.EvilExtractor"})  # fmt: skip


def own_generation(at: Path) -> None:
    edit(at / "generation_config.json", custom_generate=str(at))
    edit(at / "config.json", custom_generate=str(at))


def pickled_weights(at: Path) -> None:
    (at / "model.safetensors").unlink()
    (at / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(at.parent / "sentinel")))


def attention_of_the_hub(at: Path) -> None:
    edit(at / "config.json", _attn_implementation=str(at), attn_implementation=str(at))


FOLDERS: dict[str, Callable[[Path], None]] = {
    "nothing else": lambda at: None,
    "auto_map in the configuration": auto_map_in_config,
    "a model type of its own": own_model_type,
    "an architecture of its own": own_architecture,
    "auto_map in the tokenizer": auto_map_in_tokenizer,
    "auto_map in the processor": auto_map_in_processor,
    "a generation of its own": own_generation,
    "pickled weights": pickled_weights,
    "attention from elsewhere": attention_of_the_hub,
}


# ---- .pt2 archives ---------------------------------------------------------------------------------------

Entries = dict[str, bytes]


def read_archive(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_archive(path: Path, entries: Entries) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def named(entries: Entries, ending: str) -> str:
    return next(name for name in entries if name.endswith(ending))


def changed_json(entries: Entries, ending: str, change: Callable[[Any], None]) -> None:
    name = named(entries, ending)
    value = json.loads(entries[name])
    change(value)
    entries[name] = json.dumps(value).encode()


def walk(value: Any, key: str, change: Callable[[Any], Any]) -> None:
    """Replaces what stands under this key, wherever it does."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == key:
                value[name] = change(item)
            else:
                walk(item, key, change)
    elif isinstance(value, list):
        for item in value:
            walk(item, key, change)


def saved_pickle(sentinel: Path) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(Touch(sentinel), buffer)
    return buffer.getvalue()


def pickled_entry(entries: Entries, sentinel: Path, flag: Any = True) -> None:
    def change(config: Any) -> None:
        first = next(iter(config["config"].values()))
        first["use_pickle"] = flag
        entries[named(entries, "weights/" + first["path_name"])] = saved_pickle(sentinel)

    changed_json(entries, "model_weights_config.json", change)


def pickled_constant(entries: Entries, sentinel: Path, prefix: str = "opaque_obj_0") -> None:
    row = {"path_name": prefix, "is_param": False, "use_pickle": True, "tensor_meta": None}
    changed_json(entries, "model_constants_config.json", lambda config: config["config"].update(evil=row))
    folder_of = named(entries, "model_constants_config.json").rpartition("/")[0]
    entries[f"{folder_of}/{prefix}"] = pickle.dumps(Touch(sentinel))


def entry(entries: Entries, sentinel: Path, name: str) -> None:
    root = named(entries, "archive_format").rpartition("/")[0]
    entries[f"{root}/{name}"] = saved_pickle(sentinel)


def in_program(entries: Entries, change: Callable[[Any], None]) -> None:
    changed_json(entries, "models/model.json", change)


def rename_value(program: Any, old: str, new: str) -> Any:
    """The program with a value under another name."""
    return json.loads(json.dumps(program).replace(json.dumps(old), json.dumps(new)))


def renamed(entries: Entries, sentinel: Path) -> None:
    name = named(entries, "models/model.json")
    program = json.loads(entries[name])
    value = next(iter(program["graph_module"]["graph"]["tensor_values"]))
    evil = f"x = {expression(sentinel)}; {value}"
    entries[name] = json.dumps(rename_value(program, value, evil)).encode()


def tree(context: str, kind: str = "collections.defaultdict") -> Callable[[str], str]:
    def change(text: str) -> str:
        spec = json.loads(text)
        spec[1]["children_spec"][1] = {"type": kind, "context": context, "children_spec": []}
        return json.dumps(spec)

    return change


def cache_context(sentinel: Path) -> str:
    return json.dumps({"class": "subprocess:Popen", "list": ["touch", str(sentinel)]})


ARCHIVES: dict[str, Callable[[Entries, Path], None]] = {
    "a pickled weight": pickled_entry,
    "a pickled weight, flagged with a number": lambda e, s: pickled_entry(e, s, 1),
    "a pickled weight, flagged with a text": lambda e, s: pickled_entry(e, s, "true"),
    "a pickled object among the constants": pickled_constant,
    "a script object among the constants": lambda e, s: pickled_constant(e, s, "custom_obj_0"),
    "weights of the older form": lambda e, s: entry(e, s, "data/weights/model.pt"),
    "constants of the older form": lambda e, s: entry(e, s, "data/constants/model.pt"),
    "a pickle of another name": lambda e, s: entry(e, s, "data/weights/weight_9.pkl"),
    "a checkpoint among the models": lambda e, s: entry(e, s, "models/model.ckpt"),
    "a compiled library": lambda e, s: entry(e, s, "data/aotinductor/model/model.so"),
    "a compiled wrapper": lambda e, s: entry(e, s, "data/aotinductor/model/wrapper.json"),
    "sample inputs": lambda e, s: e.update({named(e, "sample_inputs/model.pt"): saved_pickle(s)}),
    "sample inputs, plainly pickled": lambda e, s: e.update(
        {named(e, "sample_inputs/model.pt"): pickle.dumps(Touch(s))}
    ),
    "an expression of sizes": lambda e, s: in_program(e, lambda p: walk(p, "expr_str", lambda t: expression(s))),
    "an expression inside one of sizes": lambda e, s: in_program(
        e, lambda p: walk(p, "expr_str", lambda t: f'Add("{expression(s)}", Integer(1))')
    ),
    "an expression that nothing reads": lambda e, s: in_program(
        e, lambda p: p["graph_module"]["graph"]["sym_int_values"].update(
            unread={"as_expr": {"expr_str": expression(s), "hint": None}})
    ),
    "a guard": lambda e, s: in_program(e, lambda p: p.update(guards_code=[expression(s) + " == 3"])),
    "a guard that ends the call": lambda e, s: in_program(
        e, lambda p: p.update(guards_code=[f"True, ''); {expression(s)}; (0"])
    ),
    "the name of a value": renamed,
    "the name of a parameter of forward": lambda e, s: in_program(
        e, lambda p: walk(p, "forward_arg_names", lambda names: [f"x={expression(s)}", *names[1:]])
    ),
    "a function as an operator": lambda e, s: in_program(
        e, lambda p: p["graph_module"]["graph"]["nodes"].insert(0, {
            "target": "torch.os.system", "name": "", "inputs": [{"name": "", "arg": {"as_string": f"touch {s}"}}],
            "outputs": [], "metadata": {}, "is_hop_single_tensor_return": None})
    ),
    "an operator that opens files": lambda e, s: in_program(
        e, lambda p: p["graph_module"]["graph"]["nodes"].insert(0, {
            "target": "torch.ops.aten.from_file.default", "name": "opened", "metadata": {},
            "inputs": [{"name": "filename", "arg": {"as_string": str(s)}, "kind": 1},
                       {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
                       {"name": "size", "arg": {"as_int": 4}, "kind": 1}],
            "outputs": [{"as_tensor": {"name": "opened"}}], "is_hop_single_tensor_return": None})
    ),
    "a tree whose default is a function": lambda e, s: in_program(
        e, lambda p: walk(p, "in_spec", tree(json.dumps(
            {"default_factory_module": "os", "default_factory_name": "system", "dict_context": []})))
    ),
    "a tree with an enumeration": lambda e, s: in_program(
        e, lambda p: walk(p, "in_spec", tree(json.dumps({"__enum__": True, "fqn": "this:x", "name": "y"}),
                                             "builtins.dict"))
    ),
    "a cache made of a process": lambda e, s: in_program(
        e, lambda p: walk(p, "out_spec", lambda t: json.dumps([1, {
            "type": "transformers.cache_utils.DynamicCache", "context": cache_context(s), "children_spec": []}]))
    ),
}  # fmt: skip
