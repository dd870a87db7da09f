"""Patches: put on in order, taken off in reverse, counted, reported; the block for torch.export."""

import copy
import subprocess
import sys
import threading
from pathlib import Path

import fairlead.tree.caches
import pytest
import torch
from export_families import FAMILIES, differences, exported
from fairlead.patches import slots, table

import fairlead
from fairlead import patches


@pytest.fixture
def own_rows():
    """Rows that a test registers are taken out again."""
    before = list(table.patch_rows())
    yield
    table._rows[:] = before
    assert not slots._slots, "every block of a test has ended"


class Thing:
    def value(self):
        return 1

    @staticmethod
    def fixed():
        return "fixed"

    @classmethod
    def named(cls):
        return cls.__name__


class Heir(Thing):
    pass


HERE = f"{__name__}.Thing"


def add(number):
    def factory(original):
        return lambda self: original(self) * 10 + number

    return factory


def test_rows_are_applied_in_order_and_undone_to_the_very_object(own_rows):
    original = Thing.value
    patches.register_patch("one", f"{HERE}.value")(add(2))
    patches.register_patch("one", f"{HERE}.value")(add(3))
    with patches.apply_patches("one") as applied:
        assert Thing().value() == 123
    assert Thing.value is original
    assert [outcome.status for outcome in applied] == ["applied", "applied"]


def test_an_exception_undoes_them_too(own_rows):
    original = Thing.value
    patches.register_patch("one", f"{HERE}.value")(add(2))
    with pytest.raises(KeyError), patches.apply_patches("one"):
        raise KeyError("model")
    assert Thing.value is original


def test_nested_blocks_count(own_rows):
    patches.register_patch("one", f"{HERE}.value")(add(2))
    with patches.apply_patches("one"):
        with patches.apply_patches("one"):
            assert Thing().value() == 12, "once, not twice"
        assert Thing().value() == 12
    assert Thing().value() == 1


def test_blocks_that_overlap_undo_only_their_own(own_rows):
    patches.register_patch("one", f"{HERE}.value")(add(2))
    patches.register_patch("two", f"{HERE}.value")(add(3))
    one, two = patches.apply_patches("one"), patches.apply_patches("two")
    one.__enter__()
    two.__enter__()
    assert Thing().value() == 123
    one.__exit__(None, None, None)
    assert Thing().value() == 13, "the row below is cut out"
    two.__exit__(None, None, None)
    assert Thing().value() == 1


def test_two_threads_share_a_row_until_the_last_one_ends(own_rows):
    patches.register_patch("one", f"{HERE}.value")(add(2))
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def other():
        with patches.apply_patches("one"):
            inside.set()
            leave.wait(10)
            seen.append(Thing().value())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with patches.apply_patches("one"):
        seen.append(Thing().value())
    seen.append(Thing().value())
    leave.set()
    thread.join()
    assert seen == [12, 12, 12]
    assert Thing().value() == 1


def test_static_class_and_inherited_methods_come_back_as_they_were(own_rows):
    raw = dict(vars(Thing))
    patches.register_patch("one", f"{HERE}.fixed")(lambda original: lambda: original() + "!")
    patches.register_patch("one", f"{HERE}.named")(lambda original: lambda cls: original(cls) + "!")
    patches.register_patch("one", f"{__name__}.Heir.value")(add(2))
    with patches.apply_patches("one"):
        assert (Thing.fixed(), Thing().fixed(), Thing.named(), Heir().value()) == ("fixed!", "fixed!", "Thing!", 12)
        assert Thing().value() == 1
    assert dict(vars(Thing)) == raw
    assert "value" not in vars(Heir)


def test_what_cannot_be_found_is_reported_and_said(own_rows):
    patches.register_patch("one", "torch.Tensor.no_such_method", "no_such_package.x.y", f"{HERE}.value", name="gone")(
        add(2)
    )
    with (
        pytest.warns(
            UserWarning, match=r"Expected torch.Tensor.no_such_method for the patch 'gone', but torch.Tensor has no"
        ),
        patches.apply_patches("one") as applied,
    ):
        assert Thing().value() == 12
    assert [outcome.target for outcome in applied.unresolved] == ["torch.Tensor.no_such_method", "no_such_package.x.y"]
    report = applied.report()
    assert report.startswith("patches: 1 applied, 2 unresolved")
    assert "unresolved: gone: no_such_package.x.y (no_such_package cannot be imported" in report


def test_a_factory_that_fails_leaves_nothing_behind(own_rows):
    original = Thing.value
    patches.register_patch("one", f"{HERE}.value")(add(2))
    patches.register_patch("one", f"{HERE}.fixed", name="broken")(lambda original: 1 / 0)
    with (
        pytest.raises(fairlead.InvalidInput, match=r"from the patch 'broken', got ZeroDivisionError: division by zero"),
        patches.apply_patches("one"),
    ):
        pass
    assert Thing.value is original


def test_requests_that_make_no_sense_are_refused():
    with pytest.raises(fairlead.InvalidInput, match=r"\[register_patch\] Expected dotted paths such as .* got 'view'"):
        patches.register_patch("one", "view")
    with pytest.raises(fairlead.InvalidInput, match=r"\[register_patch\] .* got none"):
        patches.register_patch("one")
    with pytest.raises(fairlead.InvalidInput, match=r"\[apply_patches\] Expected names of backends"):
        patches.apply_patches().__enter__()
    with pytest.raises(fairlead.InvalidInput, match=r"\[unregister_patch\] Expected a factory registered for 'one'"):
        patches.unregister_patch("one", add(1))
    with pytest.raises(ValueError, match="patch_transformers"):
        patches.torch_export_patches(patch_transformers="perhaps").__enter__()


def test_a_row_can_be_taken_out_again(own_rows):
    factory = patches.register_patch("one", f"{HERE}.value")(add(2))
    patches.unregister_patch("one", factory)
    with patches.apply_patches("one") as applied:
        assert applied.report() == "patches: none registered"


def test_attributes_of_an_object_are_replaced_for_a_block():
    thing = Thing()
    thing.size = 3
    with patches.patch_attributes([(thing, "size", lambda n: n + 1), (thing, "size", lambda n: n * 2)]):
        assert thing.size == 8
    with patches.patch_attribute(thing, "size", lambda n: None):
        assert thing.size is None
    assert vars(thing) == {"size": 3}


def test_llama_exports_and_the_block_leaves_nothing():
    model, inputs, shapes, other = FAMILIES["llama"]()
    registry = torch.utils._pytree.SUPPORTED_NODES
    before = {cls: registry.get(cls) for cls in fairlead.tree.caches.cache_classes()}
    given = copy.deepcopy(inputs)
    program, applied = exported(model, inputs, shapes)
    assert differences(program, model, other) <= 1e-6
    assert all(torch.equal(inputs[name], given[name]) for name in inputs)
    assert {cls: registry.get(cls) for cls in fairlead.tree.caches.cache_classes()} == before
    assert "masks_by_broadcasting" in applied.report()
    assert not slots._slots


def test_frequencies_that_change_with_the_length(own_rows):
    model, inputs, shapes, other = FAMILIES["llama_dynamic_ntk"]()
    program, applied = exported(model, inputs, shapes)
    assert differences(program, model, other) <= 1e-6
    assert "LlamaRotaryEmbedding.forward" in applied.report()


class Branching(torch.nn.Module):
    def forward(self, x):
        return self.chosen(x) + 1

    def chosen(self, x):
        return x * 2 if x.sum() > 0 else x * 3


def test_the_recorder_applies_the_rows_for_it(own_rows, tmp_path):
    calls = []

    def without_branch(original):
        def chosen(self, x):
            calls.append(1)
            return torch.where(x.sum() > 0, x * 2, x * 3)

        return chosen

    original = Branching.chosen
    patches.register_patch("observe", f"{__name__}.Branching.chosen")(without_branch)
    fairlead.export(Branching().eval(), (torch.ones(3, 4),), tmp_path / "model.onnx")
    assert calls
    assert Branching.chosen is original


def test_the_state_of_a_model_is_put_back():
    class Remembering(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.cached_sequence_length = 3
            self.history = [1]

        def forward(self, x):
            assert self.cached_sequence_length is None
            self.cached_sequence_length = x.shape[0]
            self.history.append(x)
            self.seen += 1
            return x

    model = Remembering()
    before = dict(vars(model))
    with patches.reset_model_state(model):
        model(torch.ones(5))
    assert vars(model) == before
    assert (model.cached_sequence_length, model.history, model.seen.item()) == (3, [1], 0)


def test_flags_of_a_config_are_set_for_a_block():
    class Config:
        use_cache = True
        return_dict = True

    model = Thing()
    model.config = Config()
    with patches.patch_model_config(model, {"use_cache": False, "return_dict": None, "unknown": 1}):
        assert (model.config.use_cache, model.config.return_dict) == (False, True)
    assert vars(model.config) == {}
    with patches.patch_model_config(Thing(), {"use_cache": False}):
        pass


def test_fixes_of_nodes_and_programs():
    class Adds(torch.nn.Module):
        def forward(self, x):
            return x + x

    program = torch.export.export(Adds(), (torch.ones(2),))

    def twice(module, node):
        if node.target is not torch.ops.aten.add.Tensor:
            return False
        with module.graph.inserting_before(node):
            new = module.graph.call_function(torch.ops.aten.mul.Tensor, (node.args[0], 2))
        node.replace_all_uses_with(new)
        return True

    seen = []
    patches.register_fx_node_fix("one")(twice)
    patches.register_fx_program_fix("one")(seen.append)
    try:
        assert patches.apply_fx_node_fixes("one", program.graph_module) == 1
        assert patches.apply_fx_program_fixes("one", program) == 1
        assert patches.apply_fx_node_fixes("nothing", program.graph_module) == 0
    finally:
        patches.unregister_fx_fix("one", twice)
        patches.unregister_fx_fix("one", seen.append)
    assert seen == [program]
    assert "mul" in str(program.graph)
    assert "add" not in str(program.graph)


def test_the_table_is_described_for_the_release_that_is_installed():
    text = patches.describe("dynamo")
    for row in patches.patch_rows("dynamo"):
        assert f"dynamo: {row.name} ({row.versions})" in text
        assert all((row.problem, row.remedy, row.looked_for)), f"{row.name} says what it is for"
    assert len({row.name for row in patches.patch_rows()}) == len(patches.patch_rows())


def test_masks_made_with_vmap_can_be_saved(tmp_path):
    masking = pytest.importorskip("transformers.masking_utils", reason="masks are made without vmap before 4.53")
    import inspect

    from transformers import LlamaConfig

    taken = inspect.signature(masking.create_causal_mask).parameters

    class Masks(torch.nn.Module):
        def forward(self, x, kinds):
            given = {"inputs_embeds" if "inputs_embeds" in taken else "input_embeds": x}
            if "cache_position" in taken:
                given["cache_position"] = torch.arange(x.shape[1])
            config = LlamaConfig(num_hidden_layers=1, attn_implementation="sdpa")
            return masking.create_causal_mask(
                config=config, attention_mask=None, past_key_values=None,
                or_mask_function=lambda b, h, q, k: kinds[b, q] == kinds[b, k], **given,
            )  # fmt: skip

    def call(batch, length):
        return torch.randn(batch, length, 8), torch.arange(batch * length).reshape(batch, length) % 3

    auto = torch.export.Dim.AUTO
    with patches.torch_export_patches():
        assert torch.equal(Masks()(*call(3, 5)), _unpatched(Masks(), call(3, 5)))
        program = torch.export.export(Masks(), call(2, 7), dynamic_shapes=({0: auto, 1: auto}, {0: auto, 1: auto}))
    torch.export.save(program, tmp_path / "masks.pt2")
    loaded = torch.export.load(tmp_path / "masks.pt2")
    assert torch.equal(loaded.module()(*call(3, 5)), Masks()(*call(3, 5)))


def _unpatched(module, call):
    """What a module gives while nothing is patched, from within a block."""
    originals = [(slot, slot.layers[-1].value) for slot in slots._slots.values()]
    try:
        for slot, _ in originals:
            setattr(slot.owner, slot.name, slot.raw)
        return module(*call)
    finally:
        for slot, value in originals:
            setattr(slot.owner, slot.name, value)


ROOT = Path(__file__).resolve().parents[2]


def test_the_page_lists_the_table():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "patches_page.py", "--check"], capture_output=True)
    assert done.returncode == 0, done.stdout
