"""Torch's recurrent layers, rebuilt from calls that torch.func can batch.

These calls can also be intercepted; see :mod:`escalade.policies.population.interception`. Torch's own
recurrent layers are a single call each, so they can be neither batched nor intercepted.

Each function has the arguments of torch's function of the same name, and returns NotImplemented for arguments
that torch must handle.
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
    """Return the next hidden state and memory."""
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
    """Return the next hidden state."""
    return _gru(nn.functional.linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


def _lstm(seen: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Tensor | None) -> tuple[Tensor, ...]:
    hidden, memory = state
    enter, leave, new, out = (seen + nn.functional.linear(hidden, w_hh, b_hh)).chunk(4, dim=-1)
    memory = leave.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


def _gru(seen: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Tensor | None) -> tuple[Tensor, ...]:
    (hidden,) = state
    inputs, recurrent = seen.chunk(3, dim=-1), nn.functional.linear(hidden, w_hh, b_hh).chunk(3, dim=-1)
    reset, update = (inputs[0] + recurrent[0]).sigmoid(), (inputs[1] + recurrent[1]).sigmoid()
    new = (inputs[2] + reset * recurrent[2]).tanh()
    return (new + update * (hidden - new),)


def _run(step: Step, *arguments: Any) -> Any:
    """Run all layers over a sequence, with torch's arguments: input, states, weights and six settings."""
    if isinstance(arguments[3], list | tuple):
        return NotImplemented  # a packed sequence
    x, hx, weights, has_biases, layers, dropout, training, bidirectional, batch_first = arguments
    states = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    each = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if len(weights) != each * layers * directions or (dropout and training):
        return NotImplemented  # an LSTM with projections, or dropout between layers
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
    """Run one layer in one direction; return its outputs, (time, ...), and the final state."""
    outputs: list[Tensor] = []
    times = range(len(seen))
    for time in reversed(times) if backwards else times:
        state = step(seen[time], state, w_hh, b_hh)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backwards else outputs), state


lstm = partial(_run, _lstm)
gru = partial(_run, _gru)
