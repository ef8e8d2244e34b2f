"""Recurrent layers as torch computes them, made of calls that torch.func can batch.

They can be intercepted, too: see :mod:`escalade.policies.population.interception`. Neither is true of torch's
own layers, which are one call each.

Each takes what torch's function of its name takes, and returns NotImplemented for what is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[..., tuple[Tensor, ...]]


def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state and memory."""
    hidden, memory = _lstm(nn.functional.linear(input, w_ih, b_ih), tuple(hx), w_hh, b_hh)
    return hidden, memory


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state."""
    return _gru(nn.functional.linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


def _lstm(seen: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Tensor | None) -> tuple[Tensor, ...]:
    hidden, memory = state
    enter, leave, new, out = (seen + nn.functional.linear(hidden, w_hh, b_hh)).chunk(4, dim=-1)
    memory = leave.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


def _gru(seen: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Tensor | None) -> tuple[Tensor, ...]:
    (hidden,) = state
    inputs, kept = seen.chunk(3, dim=-1), nn.functional.linear(hidden, w_hh, b_hh).chunk(3, dim=-1)
    reset, update = (inputs[0] + kept[0]).sigmoid(), (inputs[1] + kept[1]).sigmoid()
    new = (inputs[2] + reset * kept[2]).tanh()
    return (new + update * (hidden - new),)


def _run(step: Step, *arguments: Any) -> Any:
    """All layers over a sequence, with torch's arguments: input, states, weights and the six settings."""
    if isinstance(arguments[3], list | tuple):
        return NotImplemented  # a packed sequence
    x, hx, weights, has_biases, layers, dropout, training, bidirectional, batch_first = arguments
    states = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    each = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if len(weights) != each * layers * directions or (dropout and training):
        return NotImplemented  # an LSTM with projections, or something drawn between layers
    if batch_first:
        x = x.transpose(0, 1)
    last: list[tuple[Tensor, ...]] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            w_ih, w_hh, b_ih, b_hh = (*weights[place * each : (place + 1) * each], None, None)[:4]
            first = tuple(part[place] for part in states)
            seen = nn.functional.linear(x, w_ih, b_ih)
            out, end = _over_time(step, seen, first, w_hh, b_hh, backwards=direction == 1)
            outputs.append(out)
            last.append(end)
        x = outputs[0] if directions == 1 else torch.cat(outputs, dim=-1)
    ends = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
    return (x.transpose(0, 1) if batch_first else x), *ends


def _over_time(
    step: Step,
    seen: Tensor,
    state: tuple[Tensor, ...],
    w_hh: Tensor,
    b_hh: Tensor | None,
    *,
    backwards: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One layer in one direction: its outputs, (time, ...), and the state at its end."""
    outputs: list[Tensor] = []
    times = range(len(seen))
    for time in reversed(times) if backwards else times:
        state = step(seen[time], state, w_hh, b_hh)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backwards else outputs), state


lstm = partial(_run, _lstm)
gru = partial(_run, _gru)
