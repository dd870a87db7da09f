"""How well a decoder with quantised weights predicts a text, beside the model that it was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fairlead.quantize import Likelihood
from fairlead.runtime.generator import Generator, Run

MOST = 512  # tokens
# Ordinary English that no corpus has: plain sentences, names, numbers, a dialogue and a list.
TEXT = """\
The harbour of Brannoch lies at the end of a narrow bay, where the wind from the hills meets the wind from the
sea. In winter only two boats go out. The older one belongs to Marta Lindqvist, who bought it in 1987 with the
money her aunt had left her, and who has painted it green every spring since. The other one is run by three
brothers, none of whom can swim.

On the first Tuesday of March the weather service announced a storm. Marta read the notice twice, folded it,
and put it into the pocket of her coat. "It will come later than they think," she said to the boy who carried
the crates. "It always does."

"How do you know?" he asked.

"Because the gulls are still on the water. When they sit on the church, we stay at home."

They left at half past five. The engine was cold and coughed for a while, then it ran as it should. Behind
them the lamps of the village became a thin line, and in front of them there was nothing but the sound of the
waves. The boy counted the buoys aloud: one, two, three, four. At the fifth they turned north, because the
nets were there, and because the current would help them on the way back.

By noon they had filled eleven crates, which was more than in the whole week before. Marta looked at the sky,
at the water, and at her watch. The light had changed. Far away, over the islands, a grey wall stood where the
horizon had been. She did not say a word, but she cut the last line instead of pulling it in, and the boy
understood.

To tie a boat for a storm you need the following: four ropes of the same length, two old tyres, a piece of
chain, and patience. Tie the bow first. Leave enough slack for the tide, which rises about three metres here,
and check every knot before you check it again. If a rope sings in the wind, it is too tight.

The storm came at eight in the evening, three hours later than it had been announced.
"""


def measured(model: torch.nn.Module, tokenizer: Any, folder: str) -> Likelihood:
    most = getattr(model.config, "max_position_embeddings", None) or MOST
    tokens = np.asarray([tokenizer(TEXT)["input_ids"][: min(MOST, most)]], np.int64)
    run = Run(Generator(folder), tokens[:, :-1], None, {})
    got = run.logits(run.fed, run.parts_of(0))[0]
    with torch.no_grad():
        want = model(input_ids=torch.from_numpy(tokens[:, :-1])).logits[0].float().numpy()
    return Likelihood(
        tokens.shape[1] - 1, negative(want, tokens[0, 1:]), negative(got, tokens[0, 1:]),
        float((want.argmax(-1) == got.argmax(-1)).mean()),
    )  # fmt: skip


def negative(logits: np.ndarray, tokens: np.ndarray) -> float:
    """The mean over the places of -log of the probability of the token that comes."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    logs = wide[np.arange(len(tokens)), tokens] - np.log(np.exp(wide).sum(-1))
    return float(-logs.mean())
