"""Evaluation keeps no logits and draws no random numbers."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from llmtui.core.worker.evaluation import Evaluated, evaluate
from tests.core.worker.rows_in_memory import TokenSet


def rows(count: int) -> TokenSet:
    some = TokenSet()
    for number in range(count):
        ids = list(range(5, 8 + number % 7))
        some.append(ids, [-100, *ids[1:]])
    return some


def run(model: Any, some: TokenSet, on_progress: Any = lambda done, total: None) -> Evaluated:
    return evaluate(model, some, batch_size=3, pad_id=0, device=torch.device("cpu"), autocast=nullcontext,
                    on_progress=on_progress)  # fmt: skip


def test_the_logits_of_a_batch_are_gone_before_the_next(llama: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama)
    alive: list[weakref.ref[torch.Tensor]] = []
    real = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        out = real(*args, **kwargs)
        alive.append(weakref.ref(out.logits))
        return out

    model.forward = forward
    counts = []
    run(model, rows(12), lambda *_: counts.append(sum(ref() is not None for ref in alive)))
    assert counts == [0, 0, 0, 0]


def test_it_counts_every_row_once_and_leaves_no_trace(llama: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama).train()
    state = torch.get_rng_state()
    seen = []
    got = run(model, rows(10), lambda done, total: seen.append((done, total)))
    assert seen == [(3, 10), (6, 10), (9, 10), (10, 10)]
    assert got.rows == 10
    assert got.tokens == sum(len(rows(10)[i]["labels"]) - 1 for i in range(10))
    assert torch.equal(state, torch.get_rng_state())
    assert model.training


def test_a_loss_that_is_not_finite_is_none(llama: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    got = run(model, rows(4))
    assert got.loss is None
    assert got.perplexity is None
    assert Evaluated(loss=800.0, accuracy=None, rows=1, tokens=1, batch_size=1).perplexity is None
