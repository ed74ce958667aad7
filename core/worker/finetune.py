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

from llmtui.core.data import Prepared, prepare
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.attempt import AttemptInfo
from llmtui.core.worker import evaluation, samples
from llmtui.core.worker.arguments import training_arguments, warmup_steps
from llmtui.core.worker.failures import NanLossError
from llmtui.core.worker.feeding import CountingCollator
from llmtui.core.worker.locate import Location
from llmtui.core.worker.memory import final_event, memory_event, weight_bytes
from llmtui.core.worker.models import find_model, load_model, load_tokenizer, make_trainable, max_positions, pad_token
from llmtui.core.worker.precision import Precision, choose_precision
from llmtui.core.worker.progress import load_progress
from llmtui.core.worker.saving import Checkpoints, save_result
from llmtui.core.worker.session import Session
from llmtui.core.worker.steps import StepLog
from llmtui.core.worker.trainer import Hooks, RunTrainer, Settings

_ZERO_STEPS = 3  # a loss of exactly 0 over this many first steps means that nothing is learned


class Finetune:
    """One attempt of a fine-tuning run."""

    def __init__(self, session: Session, preset: Preset, attempt: AttemptInfo, settings: str) -> None:
        self.session = session
        self.directory = session.directory
        self.preset = preset
        self.attempt = attempt
        use_gpu = torch.cuda.is_available() and preset.gpu_split.gpus != "none"
        self.device = torch.device("cuda:0" if use_gpu else "cpu")
        capability = torch.cuda.get_device_capability(0) if use_gpu else None
        self.precision: Precision = choose_precision(preset, self.device.type, capability)
        self.uuids = tuple(gpu.uuid for gpu in attempt.gpus)
        self.resumed = self._resume_path()
        self.from_step = 0 if attempt.weights_only or self.resumed is None else attempt.from_step or 0
        self.progress = load_progress(None if attempt.weights_only else self.resumed)
        self.checkpoints = Checkpoints(self.directory, settings, preset.checkpoints.save_total_limit, session.write)
        self.steps = StepLog(session.write, self.device)
        self.notes: list[str] = []
        self.outcome: str = "finished"
        self.cause = ""
        self._to_answer: list[requests.Request] = []
        self._save_reason = ""
        self._first_step_seen = False
        self._sampled: int | None = None

    def _resume_path(self) -> Path | None:
        if self.attempt.checkpoint is None:
            return None
        path = Path(self.attempt.checkpoint)
        return path if path.is_absolute() else self.directory.path / path

    # --- the attempt from start to end ------------------------------------------------------------

    def run(self) -> None:
        """Load, train, save.

        Raises:
            StopRequested: stopped before there was anything to save.
            LlmtuiError: with place and cure.
        """
        self._load()
        self._build_trainer()
        if self.from_step >= self.total_steps:
            self.trainer._load_from_checkpoint(str(self.resumed))
            self._write_plan(self.total_steps)
        else:
            self._train()
        self.steps.flush(everything=True)
        if self.outcome == "finished":
            self._finish()

    def _load(self) -> None:
        session, preset = self.session, self.preset
        session.phase("loading_model", text="finding it")
        location = self._kept_base(find_model(preset, self.directory.path))
        if location.said:
            self.notes.append(location.said)
        self.tokenizer = load_tokenizer(location, preset)
        self.pad_id, said = pad_token(self.tokenizer)
        self.notes.append(said)
        session.check_stop()
        self.data: Prepared = prepare(
            preset, self.tokenizer, base_folder=self.directory.path, max_positions=self._positions(location),
            on_progress=self._on_data,
        )  # fmt: skip
        for text in self.data.warnings:
            session.warn("data", text)
        session.check_stop()
        session.phase("loading_model", text="weights")
        model = load_model(location, preset, self.precision, str(self.device))
        self.weights = weight_bytes(model)
        session.write(memory_event("loading_model", self.weights, self.uuids))
        from transformers import set_seed

        set_seed(preset.training.seed)  # LoRA's first weights do not depend on what was drawn before
        self.base = preset.model.name_or_path
        self.model = make_trainable(model, preset)
        session.check_stop()

    def _kept_base(self, location: Location) -> Location:
        """An adapter on random weights is worth nothing without them: keep such a base in the run directory."""
        if not location.initialise or self.preset.lora is None:
            return location
        base = self.directory.path / "base"
        if not (base / "config.json").is_file():
            whole = self.preset.model_copy(
                update={"model": self.preset.model.model_copy(update={"quantization": "none"})}
            )
            load_model(location, whole, Precision("float32", None), "cpu").save_pretrained(base)
            load_tokenizer(location, self.preset).save_pretrained(base)
        return Location(str(base), said=f"{location.said}; kept in base/")

    def _positions(self, location: Location) -> int | None:
        from transformers import AutoConfig

        class _Holder:
            config = AutoConfig.from_pretrained(
                location.path, revision=self.preset.model.revision or "main",
                trust_remote_code=self.preset.model.trust_remote_code,
            )  # fmt: skip

        return max_positions(_Holder)

    def _on_data(self, phase: str, done: int, total: int | None) -> None:
        self.session.phase(phase, done, total)  # type: ignore[arg-type]
        self.session.check_stop()

    def _build_trainer(self) -> None:
        from transformers import TrainingArguments

        training = self.preset.training
        batches = math.ceil(len(self.data.train) / training.per_device_train_batch_size)
        self.steps_per_epoch = math.ceil(batches / training.gradient_accumulation_steps)
        self.total_steps = training.max_steps or math.ceil(training.num_train_epochs * self.steps_per_epoch)
        arguments = TrainingArguments(
            **training_arguments(
                self.preset,
                output=str(self.directory.checkpoints),
                precision=self.precision,
                evaluate=self.data.val is not None,
                device=self.device.type,
                total_steps=self.total_steps,
            )  # fmt: skip
        )
        pad_to = self.preset.dataset.max_length if self.preset.dataset.padding == "max_length" else None
        micro = self.attempt.per_device_train_batch_size or self.progress.micro_batch
        self.trainer = RunTrainer(
            model=self.model, args=arguments, train_dataset=self.data.train, eval_dataset=self.data.val, processing_class=self.tokenizer,
            owner=self, collator=CountingCollator(self.pad_id, pad_to), callbacks=[Hooks(self)],
            settings=Settings(training.train_sampling_strategy, self.data.train.lengths, training.auto_batch_size, micro),
        )  # fmt: skip
        if training.auto_batch_size and not self.trainer.model_accepts_loss_kwargs:
            self.trainer.settings.auto_batch_size = False
            self.notes.append("this model's loss cannot be split over micro-batches, so auto_batch_size is off")
        if self.progress.best_step is not None and self.preset.checkpoints.result == "best":
            self.checkpoints.protected.add(self.progress.best_step)

    def _train(self) -> None:
        if self.from_step == 0 and self.resumed is None:
            self._sample(0)
        if self.resumed is not None and not self.attempt.weights_only:
            # Never rotated away while this attempt may have to be started from it again.
            self.checkpoints.protected.add(self.from_step)
            self.trainer.train(resume_from_checkpoint=str(self.resumed))
            return
        if self.resumed is not None:
            self.trainer._load_from_checkpoint(str(self.resumed))
        self.trainer.train()

    def _finish(self) -> None:
        step = self.trainer.state.global_step or self.total_steps
        self._sample(step)
        self.session.phase("finalizing")
        best = self._best_checkpoint() if self.preset.checkpoints.result == "best" else None
        result = save_result(self.directory, self.trainer.model, self.tokenizer, best, self._result_step(best, step))
        self.session.write(memory_event("finalizing", self.weights, self.uuids))
        final = final_event()
        if final is not None:
            self.session.write(final)
        self.session.write(result)

    def _best_checkpoint(self) -> Path | None:
        if self.progress.best_step is None:
            return None
        path = self.directory.checkpoints / f"checkpoint-{self.progress.best_step}"
        if path.is_dir():
            return path
        self.session.warn("best", f"the best checkpoint ({path.name}) is gone; the result is the last step's")
        return None

    def _result_step(self, best: Path | None, step: int) -> int:
        return self.progress.best_step or step if best else step

    # --- the Trainer's moments --------------------------------------------------------------------

    def on_train_begin(self, state: Any) -> None:
        """Say what will be done, now that the Trainer has worked it out."""
        self.total_steps = state.max_steps
        self._write_plan(state.global_step)
        self.session.phase("training")
        self.steps.begin_training()

    def _write_plan(self, from_step: int) -> None:
        training, data, model = self.preset.training, self.data, self.trainer.model
        trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self.session.write(
            ev.Plan(
                attempt=self.session.attempt,
                from_step=from_step,
                total_steps=self.total_steps,
                epochs=self.total_steps / self.steps_per_epoch,
                steps_per_epoch=self.steps_per_epoch,
                per_device_train_batch_size=training.per_device_train_batch_size,
                gradient_accumulation_steps=training.gradient_accumulation_steps,
                processes=1,
                effective_batch=training.per_device_train_batch_size * training.gradient_accumulation_steps,
                warmup_steps=warmup_steps(self.preset, self.total_steps),
                train_rows=len(data.train),
                val_rows=len(data.val) if data.val else 0,
                dropped=data.dropped,
                train_tokens=data.train.trained_tokens,
                tokens_per_epoch=data.train.tokens,
                trainable_parameters=trainable,
                total_parameters=_parameters(model),
                dtype=self.precision.compute,
                attention=str(getattr(model.config, "_attn_implementation", "")),
                quantization=self.preset.model.quantization,
                device=_device_name(self.device),
                data_hash=data.data_hash,
                base_model=self.base,
                notes=self.notes,
            )  # fmt: skip
        )

    def on_pre_optimizer_step(self) -> None:
        """The learning rate the step is about to be taken with."""
        self.steps.note_rate(float(self.trainer.optimizer.param_groups[0]["lr"]))

    def on_step_end(self, state: Any, control: Any) -> None:
        """Queue the step's event, judge the loss, obey requests."""
        tokens, trained = self.trainer.group_tokens
        self.steps.end_step(state.global_step, float(state.epoch or 0), tokens, trained)
        self._judge_loss()
        if not self._first_step_seen:
            self._first_step_seen = True
            self.session.write(memory_event("training", self.weights, self.uuids))
        if state.global_step % self.preset.training.logging_steps == 0:
            print(f"step {state.global_step}/{state.max_steps}", flush=True)  # noqa: T201
        if state.global_step >= state.max_steps and self.data.val is not None:
            control.should_evaluate = True
        self._obey(control)

    def _judge_loss(self) -> None:
        steps = self.steps
        if steps.first_bad is not None and self.preset.training.on_nan == "stop":
            step, bad = steps.first_bad
            raise NanLossError(f"the loss is {bad} at step {step}", place="training",
                               hint="lower training.learning_rate, or look at the data; on_nan: continue goes on")  # fmt: skip
        if steps.seen_steps == _ZERO_STEPS and steps.zero_steps == _ZERO_STEPS:
            raise NanLossError("the loss is exactly 0 from the first step: nothing is learned", place="training",
                               hint="look at the data's answers and at dataset.max_length")  # fmt: skip

    def _obey(self, control: Any) -> None:
        for request in self.session.pending():
            if request in self._to_answer:
                continue
            if request.request == "stop_now":
                control.should_training_stop, control.should_save = True, False
                self._stop(f"stopped without a checkpoint at step {self.trainer.state.global_step}")
                self.session.answer(request, True, self.cause)
                continue
            self._to_answer.append(request)
            control.should_save = True
            self._save_reason = "request"
            if request.request == "stop":
                control.should_training_stop = True
                self._stop(f"stopped at step {self.trainer.state.global_step}, with a checkpoint")

    def _stop(self, cause: str) -> None:
        if self.trainer.state.global_step < self.total_steps:
            self.outcome, self.cause = "stopped", cause

    # --- what the Trainer asks of us -------------------------------------------------------------

    def staged_folder(self) -> str:
        """Where the Trainer writes a checkpoint."""
        return str(self.checkpoints.staging or self.directory.checkpoints)

    def smaller_batch(self, rows: int, cause: str) -> None:
        """The micro-batch was halved."""
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
            )  # fmt: skip
        )

    def save(self, write: Callable[[], None]) -> None:
        """Stage, seal and rotate; a checkpoint that cannot be written costs a warning, not the run."""
        step, began = self.trainer.state.global_step, time.perf_counter()
        reason, self._save_reason = self._save_reason or "save_steps", ""
        self.steps.pause()
        self.session.phase("saving", text=f"checkpoint-{step}")
        try:
            staging = self.checkpoints.stage(step)
            write()
            self.progress.save(staging / f"checkpoint-{step}")
            event = self.checkpoints.seal(step, reason, began)
            self.session.write(event)
            self.session.fsync()
            self.checkpoints.rotate(step)
            self._answer_saved(True, f"saved {event.path}")
        except (OSError, SafetensorError, RuntimeError) as error:
            self.checkpoints.drop_staged()
            text = f"checkpoint-{step} could not be written: {error}"
            self.session.warn("checkpoint", text)
            self._answer_saved(False, text)
        self.session.phase("training")
        self.steps.go_on()

    def _answer_saved(self, saved: bool, text: str) -> None:
        for request in self._to_answer:
            self.session.answer(request, saved, text)
            if not saved and request.request == "stop":  # never lose work: go on until it can be saved
                self.trainer.control.should_training_stop = False
                self.outcome, self.cause = "finished", ""
        self._to_answer.clear()

    def evaluate(self) -> dict[str, float]:
        """Evaluate, answer the prompts, judge best and patience."""
        rows = self.data.val
        if rows is None:
            return {}
        step, began = self.trainer.state.global_step, time.perf_counter()
        self.steps.pause()
        self._judge_loss()
        self.session.phase("evaluating", 0, len(rows))
        got = evaluation.evaluate(
            self.trainer.model, rows, batch_size=self.preset.training.per_device_eval_batch_size, pad_id=self.pad_id,
            device=self.device, autocast=self.autocast, on_progress=lambda d, t: self.session.phase("evaluating", d, t),
        )  # fmt: skip
        larger = self.preset.checkpoints.metric == "accuracy"
        best = self.progress.note(step, got.accuracy if larger else got.loss, larger)
        self.session.write(
            ev.Eval(step=step, loss=got.loss, perplexity=got.perplexity, accuracy=got.accuracy, rows=got.rows,
                    tokens=got.tokens, seconds=time.perf_counter() - began, best=best)
        )  # fmt: skip
        self.session.write(memory_event("evaluating", self.weights, self.uuids))
        self._after_eval(best, step)
        self._sample(step)
        self.session.phase("training")
        self.steps.go_on()
        return {"eval_loss": got.loss if got.loss is not None else math.nan}

    def _after_eval(self, best: bool, step: int) -> None:
        control, patience = self.trainer.control, self.preset.training.early_stopping_patience
        if best and self.preset.checkpoints.result == "best":
            self.checkpoints.protected.discard(-1)
            self.checkpoints.protected = {s for s in self.checkpoints.protected if s == self.from_step} | {step}
            control.should_save = True
            self._save_reason = self._save_reason or "best"
        if patience is not None and self.progress.waited >= patience:
            control.should_training_stop = True
            control.should_save = True
            self._save_reason = self._save_reason or "early stopping"
            self.session.warn("early_stopping", f"stopped at step {step}: {patience} evaluations without a better one")

    def _sample(self, step: int) -> None:
        if not self.preset.training.sample_prompts or self._sampled == step:
            return
        self._sampled = step
        self.steps.pause()
        self.session.phase("generating", 0, len(self.preset.training.sample_prompts))
        samples.answer_prompts(
            self.trainer.model, self.tokenizer, self.preset, step=step, device=self.device, autocast=self.autocast,
            write=self.session.write, on_progress=lambda d, t: self.session.phase("generating", d, t),
        )  # fmt: skip
        self.steps.go_on()

    def autocast(self) -> AbstractContextManager[Any]:
        """The types that training computes in, for evaluation and samples too."""
        if self.precision.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=getattr(torch, self.precision.autocast))


def _parameters(model: Any) -> int:
    """All parameters; bitsandbytes packs two nf4 values into a byte, PEFT knows how to count them."""
    if hasattr(model, "get_nb_trainable_parameters"):
        return int(model.get_nb_trainable_parameters()[1])
    return int(model.num_parameters())


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def require_device(preset: Preset) -> None:
    """A preset that names cards must find one.

    Raises:
        DataError: torch sees no GPU although the attempt was given one.
    """
    if isinstance(preset.gpu_split.gpus, list) and not torch.cuda.is_available():
        raise DataError(
            "torch sees no GPU", place="gpu_split.gpus", hint="llmtui gpus says why; gpus: none uses the CPU"
        )
