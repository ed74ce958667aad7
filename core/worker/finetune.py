"""`task: finetune`: one attempt from loading to the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from llmtui.core.data.epochs import batches_of, steps_of
from llmtui.core.data.fed import FIRST_BATCHES
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.runs import events as ev
from llmtui.core.runs.attempt import AttemptInfo
from llmtui.core.runs.checkpoints import glance, read_manifest
from llmtui.core.worker import evaluation, samples
from llmtui.core.worker.arguments import training_arguments
from llmtui.core.worker.failures import as_llmtui_error, is_out_of_memory
from llmtui.core.worker.feeding import CountingCollator
from llmtui.core.worker.judging import judge_losses
from llmtui.core.worker.label_scores import LabelScorer, LabelScores
from llmtui.core.worker.loading import load
from llmtui.core.worker.memory import final_event, memory_event
from llmtui.core.worker.models import positions
from llmtui.core.worker.obeying import Obedience
from llmtui.core.worker.plan import plan_event
from llmtui.core.worker.progress import load_progress
from llmtui.core.worker.result import save_result
from llmtui.core.worker.saving import Checkpoints, expected_checkpoint_bytes
from llmtui.core.worker.session import Session
from llmtui.core.worker.steps import StepLog
from llmtui.core.worker.trainer import Hooks, RunTrainer, Settings, own_use_cache


class Finetune:
    """One attempt of a fine-tuning run. `outcome` is finished or stopped once `run` returns."""

    def __init__(self, session: Session, preset: Preset, attempt: AttemptInfo, settings: str) -> None:
        self.session = session
        self.directory = session.directory
        self.preset = preset
        self.attempt = attempt
        self.settings = settings
        self.uuids = tuple(gpu.uuid for gpu in attempt.gpus)
        self.resumed = self._resume_path()
        self.from_step = self._first_step()
        self.progress = load_progress(None if attempt.weights_only else self.resumed)
        # A checkpoint that does not say so is from before it was noted.
        self._learned_before = self.from_step > 0 and self.progress.learned is not False
        self._save_reason = ""
        self._sampled: int | None = None
        self._best_saved: int | None = None

    def _resume_path(self) -> Path | None:
        """The checkpoint to continue from.

        Raises:
            DataError: it is not whole.
        """
        if self.attempt.checkpoint is None:
            return None
        path = self.directory.path / self.attempt.checkpoint  # an absolute path (a fork's parent) stays itself
        problem = glance(path)
        if problem is not None:
            raise DataError(f"{path.name} cannot be continued from: {problem}", place=str(path.parent),
                            hint="llmtui resume takes the newest whole one")  # fmt: skip
        return path

    def _first_step(self) -> int:
        if self.resumed is None or self.attempt.weights_only:
            return 0
        manifest = read_manifest(self.resumed)
        return manifest.step if manifest is not None else self.attempt.from_step or 0

    # --- the attempt from start to end ------------------------------------------------------------

    def run(self) -> None:
        """Load, train, save.

        Raises:
            StopRequested: stopped before there was anything to save.
            LlmtuiError: with place and cure.
        """
        self.loaded = load(self.session, self.preset, self.attempt)
        self.steps = StepLog(self.session.write, self.loaded.device, self.preset.training.logging_steps)
        self.checkpoints = Checkpoints(
            self.directory, self.settings, self.preset.checkpoints.save_total_limit,
            expected_checkpoint_bytes(self.loaded.model), self.session.write,
        )  # fmt: skip
        self._note_changes()
        self._build_trainer()
        self.obedience = Obedience(self.session, self.trainer)
        if self._trained_already():
            self._load_trained()
        else:
            self._train()
        self.steps.flush(everything=True)
        self._judge_loss()
        if self.outcome == "finished":
            self._finish()

    def _note_changes(self) -> None:
        """Say what makes a resumed curve another one than it would have been."""
        data, before = self.loaded.data.data_hash, self.progress.data_hash
        if before and before != data:
            text = "the tokens are not those that the checkpoint was trained on (data, tokenizer or their settings)"
            self.session.warn("data_changed", f"{text}, so the curve goes on as another one")
        self.progress.data_hash = data
        manifest = read_manifest(self.resumed) if self.resumed is not None and self.from_step else None
        if manifest is not None and manifest.run == self.directory.id and manifest.settings != self.settings:
            text = "preset.yaml has changed since the checkpoint was written; changed settings belong into another run"
            self.session.warn("preset_changed", text)

    @property
    def outcome(self) -> str:
        """How the attempt ended, as far as it has."""
        return "stopped" if self.obedience.stopped else "finished"

    @property
    def cause(self) -> str:
        """Why it stopped; empty when it finished."""
        return self.obedience.stopped

    def _build_trainer(self) -> None:
        self._batches_said = False
        from transformers import TrainingArguments

        training, loaded = self.preset.training, self.loaded
        self.steps_per_epoch, self.total_steps = steps_of(self.preset, len(loaded.data.train))
        arguments = training_arguments(
            self.preset, output=str(self.directory.checkpoints), precision=loaded.precision,
            evaluate=loaded.data.val is not None, device=loaded.device.type, total_steps=self.total_steps,
        )  # fmt: skip
        pad_to = self.preset.dataset.max_length if self.preset.dataset.padding == "max_length" else None
        micro = self.attempt.per_device_train_batch_size or self.progress.micro_batch
        lengths = loaded.data.train.lengths
        self.trainer = RunTrainer(
            model=loaded.model, args=TrainingArguments(**arguments), train_dataset=loaded.data.train,
            eval_dataset=loaded.data.val, processing_class=loaded.tokenizer, owner=self,
            collator=CountingCollator(loaded.pad_id, pad_to, self._batches_to_hash()), callbacks=[Hooks(self)],
            settings=Settings(training.train_sampling_strategy, lengths, training.auto_batch_size, micro),
        )  # fmt: skip
        if training.auto_batch_size and not self.trainer.model_accepts_loss_kwargs:
            self.trainer.settings.auto_batch_size = False
            loaded.notes.append("this model's loss cannot be split over micro-batches, so auto_batch_size is off")

    def _batches_to_hash(self) -> int:
        """The first batches are fed by an attempt that begins at the first step."""
        return min(FIRST_BATCHES, batches_of(self.preset, len(self.loaded.data.train))) if self.resumed is None else 0

    def _trained_already(self) -> bool:
        patience = self.preset.training.early_stopping_patience
        return self.from_step >= self.total_steps or (patience is not None and self.progress.waited >= patience)

    def _load_trained(self) -> None:
        """Nothing is left to train: only what comes after."""
        self.trainer._load_from_checkpoint(str(self.resumed))
        self.trainer.state.global_step = self.from_step
        self._write_plan(self.from_step)
        if self.loaded.data.val is not None and self.progress.evaluated != self.from_step:
            self.evaluate()

    def _train(self) -> None:
        if self.resumed is None:
            self._sample(0)
            self.trainer.train()
        elif self.attempt.weights_only:
            self.trainer._load_from_checkpoint(str(self.resumed))
            self.trainer.train()
        else:
            # Neither is rotated away while this attempt may have to be started from it again.
            self._best_saved = self.progress.best_step
            self._protect()
            self.trainer.train(resume_from_checkpoint=str(self.resumed))

    def _protect(self) -> None:
        best = self._best_saved if self.preset.checkpoints.result == "best" else None
        self.checkpoints.protected = {step for step in (self.from_step, best) if step}

    def _finish(self) -> None:
        self.session.now_to_save()
        step = self.trainer.state.global_step
        self._sample(step)
        self.session.phase("finalizing")
        best = self._best_checkpoint() if self.preset.checkpoints.result == "best" else None
        with own_use_cache(self.trainer.model, self.loaded.own_use_cache):
            chosen = int(best.name.rpartition("-")[2]) if best is not None else step
            result = save_result(self.directory, self.trainer.model, self.loaded.tokenizer, best, chosen)
        self._memory("finalizing")
        final = final_event()
        if final is not None:
            self.session.write(final)
        self.session.write(result)
        self.session.fsync()

    def _best_checkpoint(self) -> Path | None:
        for step in (self.progress.best_step, self._best_saved):
            if step is not None and glance(path := self.checkpoints.path_of(step), self.directory.id) is None:
                return path
        self.session.warn("best", "the best checkpoint is gone; the result is the last step's")
        return None

    # --- the Trainer's moments --------------------------------------------------------------------

    def on_train_begin(self, state: Any, control: Any) -> None:
        """Say what will be done, now that the Trainer has worked it out; make up for an evaluation cut short."""
        self.total_steps = state.max_steps
        self._write_plan(state.global_step)
        every = self.preset.training.eval_steps
        if self.from_step and every and self.from_step % every == 0 and self.progress.evaluated != self.from_step:
            self.evaluate()
        self.session.phase("training")
        self.steps.begin_training()

    def _write_plan(self, from_step: int) -> None:
        self.session.step = from_step
        self.session.write(
            plan_event(
                self.preset, self.loaded, attempt=self.session.attempt, from_step=from_step,
                per_epoch=self.steps_per_epoch, total_steps=self.total_steps,
            )
        )  # fmt: skip

    def on_pre_optimizer_step(self) -> None:
        """The learning rate the step is about to be taken with."""
        self.steps.note_rate(float(self.trainer.optimizer.param_groups[0]["lr"]))

    def on_step_end(self, state: Any, control: Any) -> None:
        """Queue the step's event, judge the loss, obey requests."""
        first = self.session.step == self.from_step
        self.session.step = state.global_step
        self.steps.end_step(state.global_step, float(state.epoch or 0), *self.trainer.group_tokens)
        self._judge_loss()
        self._say_first_batches()
        if first:
            self.session.now_to_save()
            self._memory("training")
        if state.global_step >= state.max_steps and self.loaded.data.val is not None:
            control.should_evaluate = True
        if self.obedience.obey(control):
            self._save_reason = "request"

    def _say_first_batches(self) -> None:
        made = self.trainer.collator.hash
        if made.batches and made.complete and not self._batches_said:
            self._batches_said = True
            self.session.write(ev.FirstBatches(batches=made.batches, hash=made.hexdigest()))

    def _judge_loss(self) -> None:
        judge_losses(
            self.steps, learned_before=self._learned_before, ended=self.session.step >= self.total_steps,
            go_on=self.preset.training.on_nan == "continue",
        )  # fmt: skip
        self.progress.learned = self._learned_before or self.steps.learned

    # --- what the Trainer asks of us -------------------------------------------------------------

    def staged_folder(self) -> str:
        """Where the Trainer writes a checkpoint."""
        return str(self.checkpoints.staging or self.directory.checkpoints)

    def smaller_batch(self, rows: int, cause: str) -> None:
        """The micro-batch was halved; later attempts begin with it."""
        training = self.preset.training
        self.progress.micro_batch = rows
        effective = training.per_device_train_batch_size * training.gradient_accumulation_steps
        self.session.write(
            ev.BatchSize(
                step=self.trainer.state.global_step,
                per_device_train_batch_size=rows,
                gradient_accumulation_steps=math.ceil(effective / rows),
                effective_batch=effective,
                cause=cause,
            )
        )

    def save(self, write: Callable[[], None]) -> None:
        """Stage, seal and rotate; a checkpoint that cannot be written costs a warning, not the run."""
        step, began = self.trainer.state.global_step, time.perf_counter()
        reason, self._save_reason = self._save_reason or "save_steps", ""
        self.steps.pause()
        self._judge_loss()
        self.session.phase("saving", text=f"checkpoint-{step}")
        try:
            staging = self.checkpoints.stage(step)
            write()
            self.progress.save(staging / f"checkpoint-{step}")
            event = self.checkpoints.seal(step, reason, began)
            if step == self.progress.best_step:
                self._best_saved = step
            self._protect()
            self.session.write(event)
            self.session.fsync()
            self.checkpoints.rotate(step)
            self.obedience.saved(f"saved {event.path}")
        except (OSError, SafetensorError, RuntimeError) as error:
            self.checkpoints.drop_staged()
            text = f"checkpoint-{step} could not be written, training goes on: {error}"
            self.session.warn("checkpoint", text)
            self.obedience.not_saved(text)
        self.session.phase("training")
        self.steps.go_on()

    def evaluate(self) -> dict[str, float]:
        """Evaluate, answer the prompts, judge best and patience. A stop cuts it short without a number."""
        rows, step = self.loaded.data.val, self.trainer.state.global_step
        if rows is None or self.obedience.stopped:
            return {}
        began = time.perf_counter()
        self.steps.pause()
        self._judge_loss()
        try:
            got = evaluation.evaluate(
                self.trainer.model, rows, batch_size=self.preset.training.per_device_eval_batch_size,
                pad_id=self.loaded.pad_id, device=self.loaded.device, autocast=self.autocast,
                on_progress=self._pause_progress("evaluating", len(rows)),
            )  # fmt: skip
            labelled = self._answer_labels()
        except _CutShort:
            return {}
        larger = self.preset.checkpoints.metric == "accuracy"
        best = self.progress.note(step, got.accuracy if larger else got.loss, larger)
        self.session.write(
            ev.Eval(step=step, loss=got.loss, perplexity=got.perplexity, accuracy=got.accuracy, rows=got.rows,
                    tokens=got.tokens, seconds=time.perf_counter() - began, best=best,
                    exact_match=labelled.exact_match, by_label=labelled.by_label)
        )  # fmt: skip
        self._memory("evaluating")
        self._after_eval(best, step)
        self._sample(step)
        self.session.phase("training")
        self.steps.go_on()
        return {"eval_loss": got.loss if got.loss is not None else math.nan}

    def _answer_labels(self) -> LabelScores:
        """Exact match of the validation rows, where they have labels."""
        loaded = self.loaded
        rows, answers = loaded.data.val, loaded.data.answers
        if rows is None or answers is None:
            return LabelScores(None, {})
        scorer = LabelScorer(
            self.trainer.model, loaded.tokenizer, self.preset.dataset.template, loaded.pad_id, loaded.device,
            self.autocast, positions(self.trainer.model.config), self.directory.path,
        )  # fmt: skip
        return scorer.score(
            rows, answers, batch_size=self.preset.training.per_device_eval_batch_size,
            on_progress=self._pause_progress("evaluating", len(answers)),
        )  # fmt: skip

    def _after_eval(self, best: bool, step: int) -> None:
        control, patience = self.trainer.control, self.preset.training.early_stopping_patience
        if best and self.preset.checkpoints.result == "best":
            control.should_save = True
            self._save_reason = self._save_reason or "best"
        if patience is not None and self.progress.waited >= patience:
            control.should_training_stop = control.should_save = True
            self._save_reason = self._save_reason or "early stopping"
            self.session.warn("early_stopping", f"stopped at step {step}: {patience} evaluations without a better one")

    def _sample(self, step: int) -> None:
        """Answer the preset's prompts, once per step; what does not fit the GPU costs the answers, not the run."""
        prompts = self.preset.training.sample_prompts
        if not prompts or self._sampled == step or self.obedience.stopped:
            return
        self._sampled = step
        self.steps.pause()
        try:
            samples.answer_prompts(
                self.trainer.model, self.loaded.tokenizer, self.preset, step=step, device=self.loaded.device,
                autocast=self.autocast, write=self.session.write,
                on_progress=self._pause_progress("generating", len(prompts)),
            )  # fmt: skip
        except _CutShort:
            pass
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self.session.warn("samples", f"no sample answers at step {step}: {as_llmtui_error(error).message}")
        self.steps.go_on()

    def _pause_progress(self, name: ev.Phase, total: int) -> Callable[[int, int], None]:
        """Progress of something that training waits for; requests are looked at on the way."""
        self.session.phase(name, 0, total)

        def on_progress(done: int, total: int) -> None:
            self.session.phase(name, done, total)
            if not self.session.something_to_save:
                self.session.check_stop()
                return
            if self.obedience.obey(self.trainer.control):
                self._save_reason = "request"
            if self.obedience.stopped:
                raise _CutShort

        return on_progress

    def _memory(self, phase: str) -> None:
        self.session.write(memory_event(phase, self.loaded.weights, self.uuids))

    def autocast(self) -> AbstractContextManager[Any]:
        """The types that training computes in, for evaluation and samples too."""
        precision = self.loaded.precision
        if precision.autocast is None:
            return nullcontext()
        return torch.autocast(self.loaded.device.type, dtype=getattr(torch, precision.autocast))


class _CutShort(Exception):
    """A stop was asked for in the middle of an evaluation or of sample answers."""
