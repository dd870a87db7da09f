"""Observes a model that gets an image on the first call only, and says what stands for it afterwards."""

import torch

from fairlead import InputObserver
from fairlead.tree import make_dynamic_cache, register_flattening_functions, string_type

LAYERS, HEADS, HEAD_DIM, IMAGE = 2, 4, 32, 224


class MultimodalModel(torch.nn.Module):
    """Minimal stand-in for the forward pass of a vision-language model."""

    def forward(self, input_ids, pixel_values=None, attention_mask=None, past_key_values=None):
        return input_ids, past_key_values


def cache_of(length: int):
    shape = (1, HEADS, length, HEAD_DIM)
    return make_dynamic_cache([(torch.rand(shape), torch.rand(shape)) for _ in range(LAYERS)])


def ids(length: int):
    return torch.randint(0, 1000, (1, length))


def main() -> None:
    model = MultimodalModel()
    observer = InputObserver(value_if_missing={"pixel_values": torch.empty((0, 3, IMAGE, IMAGE))})
    ones = torch.ones(1, 22, dtype=torch.int64)
    with register_flattening_functions(patch_transformers=True), observer(model):
        model(input_ids=ids(20), pixel_values=torch.rand(1, 3, IMAGE, IMAGE), attention_mask=ones[:, :20])
        model(input_ids=ids(1), attention_mask=ones[:, :21], past_key_values=cache_of(20))
        model(input_ids=ids(1), attention_mask=ones, past_key_values=cache_of(21))
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    kwargs = observer.infer_arguments()
    print("shapes    ", string_type(shapes))
    print("arguments ", string_type(kwargs, with_shape=True))
    print(observer.relations())
    # Sizes 0 and 1 are what was seen; torch.export fixes such sizes unless it is told not to.
    with (
        register_flattening_functions(patch_transformers=True),
        torch.fx.experimental._config.patch(backed_size_oblivious=True),
    ):
        torch.export.export(model, (), kwargs=kwargs, dynamic_shapes=shapes, strict=False)
    print("exported")


if __name__ == "__main__":
    main()
