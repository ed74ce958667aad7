"""A run's result scored on rows of a file, beside its base: `python -m llmtui.core.worker.evaluating RUN_DIRECTORY FILE
[STEP]`. Prints lines of JSON: progress, and at last the scores or the error.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import torch

from llmtui.core.data import Prepared, prepare
from llmtui.core.data.chat_templates import use_chat_template
from llmtui.core.errors import LlmtuiError, UsageError
from llmtui.core.preset import Preset, parse_preset
from llmtui.core.preset.schema import CleanSection
from llmtui.core.runs.checkpoints import find_valid, glance
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.worker import evaluation
from llmtui.core.worker.answering import answer
from llmtui.core.worker.failures import hub_error
from llmtui.core.worker.label_scores import LabelScorer, LabelScores
from llmtui.core.worker.loading import choose_device
from llmtui.core.worker.locate import Location
from llmtui.core.worker.models import find_model, load_config, load_model, load_tokenizer, pad_token, positions
from llmtui.core.worker.precision import Precision, choose_precision

Say = Callable[[str, int, int | None], None]
"""Progress: what is done, how far, out of how many."""
_DROPPING: Final = {"duplicates": False, "min_length": None, "max_length": None}


@dataclass(frozen=True, slots=True)
class Scores:
    """One model on the rows: mean loss per trained token, exp of it, token accuracy, exact match of labels."""

    loss: float | None
    perplexity: float | None
    accuracy: float | None
    exact_match: float | None
    by_label: dict[str, Any] = field(default_factory=dict)


class RunEvaluation:
    """Scores a run's result and its base on a file.

    Args:
        step: of the checkpoint to score; None takes the result, or the newest whole checkpoint while there is none.
        say: called with progress.
    """

    def __init__(self, directory: RunDirectory, data: Path, step: int | None, say: Say) -> None:
        self.directory, self.data, self.say = directory, data, say
        preset = parse_preset(directory.preset.read_text("utf-8"), directory.preset).preset
        self.preset = evaluation_preset(preset, data)
        self.notes: list[str] = []
        self.tuned, self.step = self._tuned_folder(step)
        self.device, said = choose_device(self.preset)
        self.notes += said
        capability = torch.cuda.get_device_capability(self.device) if self.device.type == "cuda" else None
        self.precision: Precision = choose_precision(self.preset, self.device.type, capability)

    def _tuned_folder(self, step: int | None) -> tuple[Path, int | None]:
        directory = self.directory
        if step is not None:
            path = directory.checkpoints / f"checkpoint-{step}"
            problem = glance(path, directory.id) if path.is_dir() else "it is not there"
            if problem is not None:
                raise UsageError(f"run {directory.id} has no whole checkpoint {step}: {problem}",
                                 hint="llmtui show says which there are")  # fmt: skip
            return path, step
        for folder in (directory.adapter, directory.model):
            if folder.is_dir():
                return folder, None
        found = find_valid(directory)
        if found.path is None:
            raise UsageError(f"run {directory.id} has no result and no checkpoint yet", hint="let it finish")
        self.notes.append(f"there is no result yet: {found.path.name} is scored")
        return found.path, found.step

    def run(self) -> dict[str, Any]:
        """The scores as JSON values.

        Raises:
            LlmtuiError: with place and cure.
        """
        folder = self.directory.path
        location = self._base()
        tokens_from = location or Location(str(self.tuned))
        self.tokenizer = load_tokenizer(tokens_from, self.preset)
        use_chat_template(self.preset.dataset.template, self.tokenizer)
        self.pad_id, _ = pad_token(self.tokenizer)
        config = load_config(tokens_from, self.preset)
        rows = prepare(
            self.preset, self.tokenizer, base_folder=folder, max_positions=positions(config), on_progress=self.say
        )
        base, tuned = self._adapter(location, rows) if self._is_adapter else self._whole(location, rows)
        return {
            "id": self.directory.id, "step": self.step, "scored": self.tuned.name, "data": str(self.data),
            "rows": len(rows.train), "tokens": rows.train.tokens, "trained_tokens": rows.train.trained_tokens,
            "dropped": rows.dropped, "base": asdict(base) if base is not None else None, "tuned": asdict(tuned),
            "notes": [*self.notes, *rows.warnings],
        }  # fmt: skip

    @property
    def _is_adapter(self) -> bool:
        return (self.tuned / "adapter_config.json").is_file()

    def _base(self) -> Location | None:
        """The base model; None when it is gone and not needed."""
        folder = self.directory.path
        try:
            return find_model(self.preset, folder, folder / "base", self._phase)
        except LlmtuiError as error:
            if self._is_adapter:
                raise
            self.notes.append(f"the base is not scored: {error.message}")
            return None

    def _phase(self, phase: str, done: int, total: int | None, text: str) -> None:
        self.say(text or phase, done, total)

    # --- the two kinds of results -----------------------------------------------------------------------

    def _adapter(self, location: Location | None, rows: Prepared) -> tuple[Scores, Scores]:
        """One model, its adapter off and on."""
        from peft import PeftModel, prepare_model_for_kbit_training

        assert location is not None
        model = load_model(location, self.preset, self.precision, str(self.device), self._phase)
        if self.preset.model.quantization != "none":  # as in training: what is not quantised computes in float32
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        try:
            model = PeftModel.from_pretrained(model, str(self.tuned))
        except Exception as error:
            raise hub_error(str(self.tuned), error) from error
        with model.disable_adapter():
            base = self._scores(model, rows, "base")
        return base, self._scores(model, rows, "tuned")

    def _whole(self, location: Location | None, rows: Prepared) -> tuple[Scores | None, Scores]:
        """Two models, one after the other."""
        tuned = self._load_and_score(Location(str(self.tuned)), rows, "tuned")
        return self._load_and_score(location, rows, "base") if location is not None else None, tuned

    def _load_and_score(self, location: Location, rows: Prepared, what: str) -> Scores:
        model = load_model(location, self.preset, self.precision, str(self.device), self._phase)
        try:
            return self._scores(model, rows, what)
        finally:
            del model
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _scores(self, model: Any, rows: Prepared, what: str) -> Scores:
        batch_size = self.preset.training.per_device_eval_batch_size
        got = evaluation.evaluate(
            model, rows.train, batch_size=batch_size, pad_id=self.pad_id, device=self.device, autocast=self._autocast,
            on_progress=lambda done, total: self.say(f"{what}: rows", done, total),
        )  # fmt: skip
        labelled = LabelScores(None, {})
        if rows.train_answers is not None:
            scorer = LabelScorer(
                model, self.tokenizer, self.preset.dataset.template, self.pad_id, self.device, self._autocast,
                positions(model.config), self.directory.path,
            )  # fmt: skip
            labelled = scorer.score(
                rows.train, rows.train_answers, batch_size=batch_size,
                on_progress=lambda done, total: self.say(f"{what}: labels", done, total),
            )  # fmt: skip
        by_label = {name: msgspec.to_builtins(score) for name, score in labelled.by_label.items()}
        return Scores(got.loss, got.perplexity, got.accuracy, labelled.exact_match, by_label)

    def _autocast(self) -> AbstractContextManager[Any]:
        name = self.precision.autocast
        return nullcontext() if name is None else torch.autocast(self.device.type, dtype=getattr(torch, name))


def evaluation_preset(preset: Preset, data: Path) -> Preset:
    """The run's preset with all rows of a file in the place of its data. Texts are cleaned as in training; no row is
    dropped for its length or for being there twice."""
    changes: dict[str, Any] = {
        "name_or_path": str(data), "sources": [], "config": None, "split": "train", "limit": None, "shuffle": False,
        "val": None, "val_size": 0, "clean": CleanSection(**preset.dataset.clean.model_dump() | _DROPPING),
    }  # fmt: skip
    return preset.model_copy(update={"dataset": preset.dataset.model_copy(update=changes)})


def main() -> int:
    """Lines of JSON; the exit code."""
    from llmtui.core.worker.__main__ import quiet

    quiet()
    step = int(sys.argv[3]) if len(sys.argv) > 3 else None
    return answer(lambda say: RunEvaluation(RunDirectory(Path(sys.argv[1])), Path(sys.argv[2]), step, say).run())


if __name__ == "__main__":
    sys.exit(main())
