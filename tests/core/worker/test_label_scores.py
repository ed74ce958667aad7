"""Exact match is what greedy answers come to, one by one; batches and padding change nothing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config

from llmtui.core.data import Prepared, prepare
from llmtui.core.data.answers import Answers
from llmtui.core.preset import parse_preset
from llmtui.core.runs import events as ev
from llmtui.core.worker.label_scores import LabelScorer
from tests.core.worker.rows_in_memory import TokenSet
from tests.core.worker.small import new_run, of, preset_text, work

LABEL = "label: {column: label, names: [cat, big house]}"
TEXTS = ("the red tree", "a river", "who likes the small bird", "blue", "dog eats", "what is green")


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of which those about animals and those about things are told apart by their first word."""
    path = tmp_path_factory.mktemp("labelled") / "rows.jsonl"
    rows = [{"text": f"{('bird', 'tree')[n % 2]} {TEXTS[n % 6]} {TEXTS[n // 6]}", "label": n % 2} for n in range(36)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def text_of(model: Path, rows: Path, template: str = "rinna", train_on: str = "response", **training: Any) -> str:
    """A preset for labelled rows."""
    dataset = f"template: {template}\n  train_on: {train_on}\n  {LABEL}"
    return preset_text(model, rows, **training).replace("template: rinna", dataset)


def prepared(text: str, tokenizer: Any) -> Prepared:
    """What a worker would train on."""
    preset = parse_preset(text).preset
    return prepare(preset, tokenizer, base_folder=Path(), max_positions=None, on_progress=lambda *_: None)


def scorer(model: Any, tokenizer: Any, template: str = "rinna") -> LabelScorer:
    return LabelScorer(model, tokenizer, template, tokenizer.pad_token_id, torch.device("cpu"), nullcontext, 128)


@pytest.fixture(scope="module")
def trained(llama: Path, labelled: Path) -> Any:
    """A run that has learned most of it: some answers are right and some are not."""
    directory = new_run(text_of(llama, labelled, max_steps=24, eval_steps=8))
    assert work(directory) == 0
    return directory


@pytest.mark.parametrize("template", ["rinna", "alpaca", "text", "chat:rinna-chat"])
@pytest.mark.parametrize("train_on", ["response", "everything"])
def test_an_answer_begins_where_the_label_does(llama: Path, labelled: Path, template: str, train_on: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(llama)
    text = text_of(llama, labelled, template, train_on).replace("max_length: 128", "max_length: 400")
    data = prepared(text, tokenizer)
    assert data.val is not None
    assert data.answers is not None
    assert len(data.answers) == len(data.val) == 4
    assert data.train_answers is not None
    assert len(data.train_answers) == len(data.train) == 32
    for row, (start, label) in enumerate(zip(data.answers.starts, data.answers.labels, strict=True)):
        ids = data.val[row]["input_ids"]
        assert tokenizer.decode(ids[start:-1]).strip() == data.answers.names[label]
        learned = [i for i, token in enumerate(data.val[row]["labels"]) if token != -100]
        assert learned == list(range(start if train_on == "response" else 0, len(ids)))


def test_exact_match_is_greedy_generation_of_each_prompt_alone(trained: Any, labelled: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(trained.model)
    tokenizer = AutoTokenizer.from_pretrained(trained.model)
    text = trained.preset.read_text()
    data = prepared(text, tokenizer)
    answers, rows = data.train_answers, data.train
    assert answers is not None
    right: dict[str, list[bool]] = {name: [] for name in answers.names}
    for row in range(len(answers)):
        prompt = torch.tensor([rows[row]["input_ids"][: answers.starts[row]]])
        made = model.generate(input_ids=prompt, do_sample=False, max_new_tokens=20, pad_token_id=0)
        said, name = tokenizer.decode(made[0, prompt.shape[1] :]), answers.names[answers.labels[row]]
        right[name].append(said.strip() == f"{name}</s>")
    wanted = {name: ev.LabelScore(rows=len(r), exact_match=sum(r) / len(r)) for name, r in right.items()}
    seen: list[tuple[int, int]] = []
    for batch_size in (1, 5, 40):
        got = scorer(model, tokenizer).score(
            rows, answers, batch_size=batch_size, on_progress=lambda done, total: seen.append((done, total))
        )
        assert got.by_label == wanted
        assert got.exact_match == sum(map(sum, right.values())) / len(answers)
    assert seen[-1] == (32, 32)
    assert sum(map(sum, right.values())) > 0, "the model has learned something, so that this test can fail"


def test_every_eval_of_a_run_says_it(trained: Any) -> None:
    evals = of(trained, ev.Eval)
    assert [e.step for e in evals] == [8, 16, 24]
    assert all(e.exact_match is not None for e in evals)
    last = evals[-1]
    assert sum(score.rows for score in last.by_label.values()) == last.rows == 4
    shares = sum(score.exact_match * score.rows for score in last.by_label.values()) / last.rows
    assert last.exact_match == pytest.approx(shares)


def test_an_answer_that_goes_on_or_never_ends_is_wrong(llama: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(llama)
    cat, dog, end = (tokenizer(word)["input_ids"] for word in ("cat", "dog", "</s>"))

    class Says(torch.nn.Module):
        config = AutoModelForCausalLM.from_pretrained(llama).config

        def __init__(self, answers: list[list[int]]) -> None:
            super().__init__()
            self.answers = answers

        def generate(self, input_ids: Any, max_new_tokens: int, **_: Any) -> Any:
            longest = max(map(len, self.answers))
            made = [answer + [tokenizer.pad_token_id] * (longest - len(answer)) for answer in self.answers]
            return torch.cat([input_ids, torch.tensor(made)], dim=1)[:, : input_ids.shape[1] + max_new_tokens]

    rows, answers = TokenSet(), Answers(["cat", "dog"])
    said = [[*cat, *end], [*dog, *end], [*cat, *dog, *end], cat * 9, [*end], [*tokenizer(" ")["input_ids"], *cat, *end]]
    for _ in said:
        rows.append([5, 6, *cat, *end], [-100, -100, *cat, *end])
        answers.append(2, "cat")
    got = scorer(Says(said), tokenizer).score(rows, answers, batch_size=6, on_progress=lambda *_: None)
    assert got.exact_match == 2 / 6, "the first, and the last with a blank before it"
    assert got.by_label == {"cat": ev.LabelScore(rows=6, exact_match=2 / 6)}


def test_what_a_template_writes_after_the_name_belongs_to_the_answer(llama: Path, labelled: Path) -> None:
    """The mark of a turn's end, where the tokenizer has no token for it."""
    tokenizer = AutoTokenizer.from_pretrained(llama)
    data = prepared(text_of(llama, labelled, "chat:chatml"), tokenizer)
    assert data.train_answers is not None
    answers, rows = data.train_answers, data.train

    class Knows(torch.nn.Module):
        """Answers each prompt as the data does."""

        config = AutoModelForCausalLM.from_pretrained(llama).config

        def generate(self, input_ids: Any, max_new_tokens: int, **_: Any) -> Any:
            made = []
            for prompt in input_ids.tolist():
                row = next(r for r in range(len(rows)) if self.ends_so(prompt, r))
                tail = rows[row]["input_ids"][answers.starts[row] :][:max_new_tokens]
                made.append(tail + [tokenizer.pad_token_id] * (max_new_tokens - len(tail)))
            return torch.cat([input_ids, torch.tensor(made)], dim=1)

        def ends_so(self, prompt: list[int], row: int) -> bool:
            asked = rows[row]["input_ids"][: answers.starts[row]]
            return prompt[-len(asked) :] == asked

    got = scorer(Knows(), tokenizer, "chat:chatml").score(rows, answers, batch_size=8, on_progress=lambda *_: None)
    assert got.exact_match == 1.0


def test_it_halves_the_batch_when_memory_runs_out_and_leaves_no_trace(trained: Any) -> None:
    model = AutoModelForCausalLM.from_pretrained(trained.model).train()
    tokenizer = AutoTokenizer.from_pretrained(trained.model)
    data = prepared(trained.preset.read_text(), tokenizer)
    assert data.train_answers is not None
    real, sizes = model.generate, []

    def generate(input_ids: Any, **more: Any) -> Any:
        sizes.append(len(input_ids))
        if len(input_ids) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(input_ids=input_ids, **more)

    wanted = scorer(model, tokenizer).score(data.train, data.train_answers, batch_size=3, on_progress=lambda *_: None)
    model.generate = generate
    state = torch.get_rng_state()
    got = scorer(model, tokenizer).score(data.train, data.train_answers, batch_size=16, on_progress=lambda *_: None)
    assert got == wanted
    assert sizes == [16, 8, *[4] * 8]
    assert torch.equal(state, torch.get_rng_state())
    assert model.training


@pytest.mark.parametrize("kind", ["neox", "gpt2"])
def test_padding_changes_no_answer(kind: str, neox: Path) -> None:
    """Also where positions are learned one by one."""
    tokenizer = AutoTokenizer.from_pretrained(neox)
    if kind == "gpt2":
        torch.manual_seed(1)
        size = {"vocab_size": len(tokenizer), "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
        model = AutoModelForCausalLM.from_config(GPT2Config(**size, bos_token_id=None, eos_token_id=0))
    else:
        model = AutoModelForCausalLM.from_pretrained(neox)
    model.eval()
    draw = torch.Generator().manual_seed(0)
    prompts = [torch.randint(3, len(tokenizer), (length,), generator=draw).tolist() for length in (40, 31, 12, 3, 1)]
    answering = scorer(model, tokenizer)
    together = answering._answer(prompts, 8, ())
    assert together == [answering._answer([prompt], 8, ())[0] for prompt in prompts]
    assert len(set(together)) > 1
