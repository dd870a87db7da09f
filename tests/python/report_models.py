"""Exports and failures for the tests of the report and for its pictures in the docs: small, real, one of each kind."""

import torch

import fairlead


def decoder():
    """A decoder with a cache: symbols, sums of symbols, fixed dims."""
    from fairlead.cli.demo import demo_model

    _, model, inputs = demo_model()
    return model, inputs


def encoder_decoder():
    """T5 as two parts, the way generation uses it: the encoder, and the decoder with its output."""
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config).eval()

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, decoder_input_ids, encoder_hidden_states, encoder_attention_mask):
            return self.model(
                decoder_input_ids=decoder_input_ids, encoder_outputs=(encoder_hidden_states,),
                attention_mask=encoder_attention_mask, use_cache=False,
            ).logits  # fmt: skip

    ids, mask = torch.randint(3, 99, (2, 9)), torch.ones(2, 9, dtype=torch.int64)
    with torch.no_grad():
        hidden = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    return {
        "encoder_model": (model.get_encoder(), {"input_ids": ids, "attention_mask": mask}),
        "decoder_model": (Decoder().eval(), {
            "decoder_input_ids": torch.randint(3, 99, (2, 5)), "encoder_hidden_states": hidden,
            "encoder_attention_mask": mask,
        }),
    }  # fmt: skip


class Router(torch.nn.Module):
    """Branches on the number of rows."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.small = torch.nn.Linear(8, 8)
        self.large = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))

    def forward(self, tokens, scale):
        hidden = self.norm(tokens)
        if tokens.shape[0] > 5:
            # Many rows are worth the larger path.
            hidden = self.large(hidden)
        else:
            hidden = torch.tanh(self.small(hidden))
        return hidden * scale


class UntoldRouter(Router):
    """The same by a number that Python keeps no memory of: nothing says at which sizes it branches."""

    def forward(self, tokens, scale):
        hidden = self.norm(tokens)
        if len("#" * tokens.shape[0]) > 5:
            # Many rows are worth the larger path.
            hidden = self.large(hidden)
        else:
            hidden = torch.tanh(self.small(hidden))
        return hidden * scale


class Rows(torch.nn.Module):
    """A loop over rows whose steps are not alike: another program for each number of them."""

    def forward(self, x):
        return torch.stack([row * 2 if k in (0, 1, 3, 6, 10) else row + 1 for k, row in enumerate(x)])


class Reads(torch.nn.Module):
    """Goes by a value, and raises at others."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        raise ValueError("nothing to scale")


class Unexplained(torch.nn.Module):
    """Two integers of which no expression of the size tells."""

    def forward(self, x):
        count = len(str(x.shape[0] ** 5)) * 7 + x.shape[0] % 3 * 11
        steps = x.new_zeros(count)
        other = x.new_ones(x.shape[0] % 4 * 13 + len(bin(x.shape[0] ** 3)) * 5)
        return steps.sum() + other.sum() + torch.cat([steps, steps]).sum() + x.sum()


class Missing(torch.nn.Module):
    """Two operators that ONNX has no form for, one of them twice."""

    def __init__(self):
        super().__init__()
        self.turn = Turn()

    def forward(self, x):
        x = torch.special.bessel_j0(x) + torch.special.bessel_j0(x * 2)
        return self.turn(x)


class Turn(torch.nn.Module):
    def forward(self, x):
        return torch.special.airy_ai(x)


class Forms(torch.nn.Module):
    """Operators that can be written, but not like this."""

    def forward(self, x):
        x = x.view(torch.float64)
        return torch.nn.functional.conv1d(x.long().unsqueeze(0), torch.ones(1, 3, 1, dtype=torch.int64))


@torch.library.custom_op("fairlead_report::third", mutates_args=())
def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


class Wrong(torch.nn.Module):
    def forward(self, x):
        return third(x)


def failure(kind: str, path):
    """The error that exporting a model gives: diverged, strict, unsolved, missing, forms, wrong."""
    x = torch.arange(1.0, 13.0).reshape(3, 4)
    tokens = torch.linspace(-1, 1, 24).reshape(3, 8)
    scale = torch.tensor(2.0)
    cases = {
        "diverged": (UntoldRouter(), (tokens, scale), {"dynamic_shapes": {"tokens": {0: "rows"}, "scale": None}}),
        "strict": (Reads(), (x,), {"strict": True}),
        "unsolved": (Unexplained(), (x,), {"dynamic_shapes": {"x": {0: "n"}}}),
        "missing": (Missing(), (x,), {}),
        "forms": (Forms(), (x,), {}),
        "wrong": (Wrong(), (x,), {"dynamic_shapes": {"x": {0: "n"}}}),
    }
    torch.manual_seed(0)
    model, inputs, options = cases[kind]
    if kind == "wrong":
        fairlead.lowerings.register_lowering("fairlead_report.third.default")(
            lambda b: b.result(b.op("Identity", b.input(0)))
        )
    try:
        fairlead.export(model.eval(), inputs, path, **options)
    except fairlead.FairleadError as error:
        return error
    finally:
        if kind == "wrong":
            fairlead.lowerings.unregister_lowering("fairlead_report.third.default")
    raise AssertionError(f"{kind} was exported")
