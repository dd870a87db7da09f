"""Patches: put on in order, taken off in reverse, counted, reported; the block for torch.export."""

import copy
import threading

import fairlead.caches
import pytest
import torch
from export_families import FAMILIES, differences, exported
from fairlead.patches import slots, table

import fairlead
from fairlead import patches


@pytest.fixture
def own_rows():
    """Rows that a test registers are taken out again."""
    before = list(table.rows())
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
    before = {cls: registry.get(cls) for cls in fairlead.caches.cache_classes()}
    given = copy.deepcopy(inputs)
    program, applied = exported(model, inputs, shapes)
    assert differences(program, model, other) <= 1e-6
    assert all(torch.equal(inputs[name], given[name]) for name in inputs)
    assert {cls: registry.get(cls) for cls in fairlead.caches.cache_classes()} == before
    assert "masks_by_broadcasting" in applied.report()
    assert not slots._slots
