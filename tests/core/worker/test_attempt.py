"""One attempt from the preset to the result: what is written, and that it is true."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import find_valid
from tests.core.worker.small import TARGETS, curve, error_of, make_data, new_run, of, preset_text, work

LORA = f"{{r: 4, lora_alpha: 8, lora_dropout: 0.1, target_modules: {TARGETS['llama']}}}"


@pytest.fixture(scope="module")
def full(llama: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    """A finished full fine-tuning, made once for this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMTUI_HOME", str(tmp_path_factory.mktemp("kept")))
        directory = new_run(preset_text(llama, data, more="checkpoints: {save_steps: 2, save_total_limit: 2}"))
        assert work(directory) == 0
        yield directory


def test_a_run_finishes_with_plan_steps_evals_checkpoints_and_result(full, llama: Path) -> None:
    (plan,), steps = of(full, ev.Plan), of(full, ev.Step)
    assert (plan.total_steps, plan.steps_per_epoch, plan.train_rows, plan.val_rows) == (6, 5, 20, 4)
    assert plan.trainable_parameters == plan.total_parameters == sum(
        p.numel() for p in AutoModelForCausalLM.from_pretrained(llama).parameters()
    )  # fmt: skip
    assert (plan.dtype, plan.attention, plan.device, plan.effective_batch) == ("float32", "sdpa", "cpu", 4)
    assert [s.step for s in steps] == [1, 2, 3, 4, 5, 6]
    assert all(s.loss and math.isfinite(s.loss) and s.grad_norm and s.seconds > 0 for s in steps)
    assert steps[-1].loss < steps[0].loss
    assert [e.step for e in of(full, ev.Eval)] == [3, 6], "the last step is evaluated once"
    assert {p.name for p in full.checkpoints.iterdir()} == {"checkpoint-4", "checkpoint-6"}
    assert [e.outcome for e in of(full, ev.Exit)] == ["finished"]


def test_tokens_are_the_real_ones_of_every_row_once_per_epoch(full) -> None:
    plan, steps = of(full, ev.Plan)[0], of(full, ev.Step)
    assert sum(s.tokens for s in steps[:5]) == plan.tokens_per_epoch
    # The first token of a row is predicted from nothing and not trained.
    assert sum(s.trained_tokens for s in steps[:5]) == plan.train_tokens - plan.train_rows


def test_the_result_loads_back_plainly_and_generates_with_its_cache(full) -> None:
    (result,) = of(full, ev.Result)
    assert (result.path, result.kind, result.step, result.source) == ("model", "model", 6, "last")
    model = AutoModelForCausalLM.from_pretrained(full.model)
    assert model.config.use_cache is True
    AutoTokenizer.from_pretrained(full.model)
    names = {p.name for p in full.model.iterdir()}
    assert not names & {"training_args.bin", "optimizer.pt", "manifest.json", "llmtui_state.json"}
    assert "model.safetensors" in names


def test_no_checkpoint_holds_training_arguments(full) -> None:
    assert not list(full.path.rglob("training_args.bin"))


def test_the_first_loss_is_the_mean_over_trained_tokens_of_the_batch(full, llama: Path, data: Path) -> None:
    """Recomputed from the model's first weights by hand: a step's loss is no mean of means."""
    directory = new_run(preset_text(llama, data, max_steps=1, train_sampling_strategy="sequential"))
    assert work(directory) == 0
    model, tokenizer = AutoModelForCausalLM.from_pretrained(llama), AutoTokenizer.from_pretrained(llama)
    total, count = 0.0, 0
    for row in _first_rows(directory, tokenizer, 4):
        with torch.no_grad():
            logits = model(torch.tensor([row])).logits[0, :-1]
        total += float(torch.nn.functional.cross_entropy(logits, torch.tensor(row[1:]), reduction="sum"))
        count += len(row) - 1
    (step,) = of(directory, ev.Step)
    assert step.trained_tokens == count
    assert step.loss == pytest.approx(total / count, rel=1e-5)


def _first_rows(directory, tokenizer, rows: int) -> list[list[int]]:
    from llmtui.core.data import prepare
    from llmtui.core.preset import parse_preset

    preset = parse_preset(directory.preset.read_text()).preset
    prepared = prepare(preset, tokenizer, base_folder=directory.path, max_positions=None, on_progress=lambda *_: None)
    return [prepared.train[i]["input_ids"] for i in range(rows)]


def test_evaluation_equals_an_independent_computation_row_by_row(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, max_steps=1, learning_rate=0.0, per_device_eval_batch_size=3,
                                    eval_steps=1))  # fmt: skip
    assert work(directory) == 0
    from llmtui.core.data import prepare
    from llmtui.core.preset import parse_preset

    model, tokenizer = AutoModelForCausalLM.from_pretrained(llama), AutoTokenizer.from_pretrained(llama)
    preset = parse_preset(directory.preset.read_text()).preset
    rows = prepare(preset, tokenizer, base_folder=directory.path, max_positions=None, on_progress=lambda *_: None).val
    loss, right, count = 0.0, 0, 0
    for i in range(len(rows)):
        ids, labels = torch.tensor(rows[i]["input_ids"]), torch.tensor(rows[i]["labels"])[1:]
        with torch.no_grad():
            logits = model(ids[None]).logits[0, :-1]
        loss += float(
            torch.nn.functional.cross_entropy(logits[labels != -100], labels[labels != -100], reduction="sum")
        )
        right += int((logits.argmax(-1) == labels).sum())
        count += int((labels != -100).sum())
    (got,) = of(directory, ev.Eval)
    assert (got.rows, got.tokens) == (4, count)
    assert got.loss == pytest.approx(loss / count, rel=1e-5)
    assert got.perplexity == pytest.approx(math.exp(loss / count), rel=1e-4)
    assert got.accuracy == pytest.approx(right / count)


@pytest.mark.parametrize(("quantization", "kind"), [("none", "neox"), ("int8", "llama"), ("nf4", "llama")])
def test_lora_leaves_an_adapter_that_loads_onto_its_base(quantization: str, kind: str, request, data: Path) -> None:
    from peft import PeftModel

    model = request.getfixturevalue(kind)
    lora = LORA.replace(TARGETS["llama"], TARGETS[kind])
    text = preset_text(model, data, lora=lora, max_steps=3).replace(
        f"name_or_path: {model}", f"name_or_path: {model}\n  quantization: {quantization}", 1
    )
    directory = new_run(text)
    assert work(directory) == 0
    (plan,), (result,) = of(directory, ev.Plan), of(directory, ev.Result)
    assert 0 < plan.trainable_parameters < plan.total_parameters / 5
    assert (plan.quantization, result.path) == (quantization, "adapter")
    whole = sum(p.numel() for p in AutoModelForCausalLM.from_pretrained(model).parameters())
    assert plan.total_parameters == whole + plan.trainable_parameters, "packed nf4 bytes are counted as what they hold"
    loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), directory.adapter)
    assert loaded.peft_config["default"].base_model_name_or_path == str(model)
    assert any(p.abs().sum() > 0 for n, p in loaded.named_parameters() if "lora_B" in n)


def test_weights_can_be_initialised_from_a_config_with_the_seed(tmp_path: Path, llama: Path, data: Path) -> None:
    import json
    import shutil

    folder = tmp_path / "fresh"
    shutil.copytree(llama, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text()) | {"llmtui_initialise_from_config": True}
    (folder / "config.json").write_text(json.dumps(config))
    first, again, other = (
        new_run(preset_text(folder, data, max_steps=2, seed=seed), f"s{seed}") for seed in (1, 1, 2)
    )  # fmt: skip
    assert [work(d) for d in (first, again, other)] == [0, 0, 0]
    assert curve(first) == curve(again) != curve(other)
    assert "llmtui_initialise" not in (first.model / "config.json").read_text()
    assert any("initialised" in note for note in of(first, ev.Plan)[0].notes)


def test_an_adapter_on_initialised_weights_keeps_its_base(tmp_path: Path, llama: Path, data: Path) -> None:
    import json
    import shutil

    from peft import PeftModel

    folder = tmp_path / "fresh"
    shutil.copytree(llama, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text()) | {"llmtui_initialise_from_config": True}
    (folder / "config.json").write_text(json.dumps(config))
    directory = new_run(preset_text(folder, data, lora=LORA, max_steps=2))
    assert work(directory) == 0
    base = directory.path / "base"
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), directory.adapter)


def test_samples_are_answered_before_at_evals_and_at_the_end_and_change_nothing(llama: Path, data: Path) -> None:
    lora = LORA  # with dropout: the random state must be put back
    asked = ["who sees the cat", "what is big"]
    more = "generation: {max_new_tokens: 5, do_sample: true, temperature: 0.8}"
    silent = new_run(preset_text(llama, data, lora=lora), "silent")
    telling = new_run(preset_text(llama, data, lora=lora, sample_prompts=asked, more=more), "telling")
    assert [work(silent), work(telling)] == [0, 0]
    assert curve(silent) == curve(telling)
    samples = of(telling, ev.Sample)
    assert [(s.step, s.index) for s in samples] == [(step, i) for step in (0, 3, 6) for i in (0, 1)]
    assert all(0 < s.tokens <= 5 and s.prompt == asked[s.index] for s in samples)
    assert not of(silent, ev.Sample)


def test_the_result_can_be_the_best_checkpoint(llama: Path, data: Path) -> None:
    """A learning rate that rises until it ruins the model makes an early evaluation the best one."""
    more = "checkpoints: {save_steps: 2, save_total_limit: 1, result: best}"
    directory = new_run(preset_text(llama, data, learning_rate=1.0, warmup_steps=6, eval_steps=2, more=more))
    assert work(directory) == 0
    evals, (result,) = of(directory, ev.Eval), of(directory, ev.Result)
    best = min((e for e in evals if e.loss is not None), key=lambda e: e.loss)
    assert best.step < 6, [e.loss for e in evals]
    assert (result.step, result.source) == (best.step, "best")
    kept = AutoModelForCausalLM.from_pretrained(directory.checkpoints / f"checkpoint-{best.step}")
    got = AutoModelForCausalLM.from_pretrained(directory.model)
    assert all(torch.equal(a, b) for a, b in zip(kept.parameters(), got.parameters(), strict=True))
    assert {p.name for p in directory.checkpoints.iterdir()} == {f"checkpoint-{best.step}", "checkpoint-6"}


def test_early_stopping_ends_a_run_that_does_not_get_better(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, learning_rate=0.0, eval_steps=1, early_stopping_patience=2))
    assert work(directory) == 0
    assert of(directory, ev.Step)[-1].step == 3
    assert of(directory, ev.Exit)[0].outcome == "finished"
    assert find_valid(directory).step == 3
    # Resumed after a crash while finishing: not one step more.
    assert work(directory) == 0
    assert of(directory, ev.Step)[-1].step == 3


def test_a_loss_that_is_not_finite_stops_the_run_and_saves_nothing(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, learning_rate=1e30, more="checkpoints: {save_steps: 1}"))
    assert work(directory) == 1
    error = error_of(directory)
    assert error.kind == "nan_loss"
    bad = [s for s in of(directory, ev.Step) if s.bad]
    assert bad
    assert bad[0].loss is None
    assert find_valid(directory).step < bad[0].step
    assert of(directory, ev.Exit)[0].step == bad[0].step


def test_it_goes_on_over_a_bad_loss_when_the_preset_says_so(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, learning_rate=1e30, on_nan="continue"))
    assert work(directory) == 0
    assert [s.step for s in of(directory, ev.Step)] == [1, 2, 3, 4, 5, 6]
    assert not any(e.best for e in of(directory, ev.Eval) if e.loss is None)


def test_rows_without_anything_to_learn_are_refused_by_name(tmp_path: Path, llama: Path) -> None:
    data = make_data(tmp_path / "long.jsonl", rows=8)
    text = preset_text(llama, data).replace("max_length: 128", "max_length: 4\n  train_on: response")
    directory = new_run(text)
    assert work(directory) == 2
    assert error_of(directory).kind == "data"
