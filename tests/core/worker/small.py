"""Tiny real models, data and runs: seconds on a CPU, the same code as the big ones."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from llmtui.core.home import runs_folder
from llmtui.core.preset import parse_preset, resolve
from llmtui.core.runs import events as ev
from llmtui.core.runs.attempt import AttemptInfo, write_attempt
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.log import EventReader

E = TypeVar("E", bound=ev.EventBase)

WORDS = (
    "red", "blue", "green", "cat", "dog", "bird", "sees", "likes", "eats", "the", "a", "big", "small", "house", "tree",
    "river", "who", "what", "where", "is",
)  # fmt: skip
LLAMA = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 64, "max_position_embeddings": 128,
}  # fmt: skip
NEOX = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 128, "hidden_dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
TARGETS = {"llama": "[q_proj, v_proj]", "neox": "[query_key_value]"}


def make_tokenizer(**special: str) -> Any:
    """A byte-level BPE of about 300 entries, with an end token and a pad token unless said otherwise."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    learned = ByteLevelBPETokenizer()
    names = special or {"eos_token": "</s>", "pad_token": "<pad>"}
    learned.train_from_iterator([" ".join(WORDS)] * 20, vocab_size=320, special_tokens=list(names.values()))
    return PreTrainedTokenizerFast(tokenizer_object=learned._tokenizer, **names)


def make_model(folder: Path, kind: str = "llama", seed: int = 0) -> Path:
    """A model folder with tokenizer and random weights."""
    import torch
    from transformers import AutoModelForCausalLM, GPTNeoXConfig, LlamaConfig

    tokenizer = make_tokenizer()
    ids = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None,
           "pad_token_id": tokenizer.pad_token_id}  # fmt: skip
    config = LlamaConfig(**LLAMA, **ids) if kind == "llama" else GPTNeoXConfig(**NEOX, **ids)
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_data(path: Path, rows: int = 24, seed: int = 0, longest: int = 12) -> Path:
    """Instruction rows of ragged lengths."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            asked, answer = (
                " ".join(draw.choice(WORDS) for _ in range(draw.randint(2, n))) for n in (longest // 2 + 2, longest)
            )
            file.write(json.dumps({"instruction": asked, "input": "", "output": answer}) + "\n")
    return path


def preset_text(model: Path | str, data: Path | str, *, lora: str = "", more: str = "", **training: Any) -> str:
    """A preset for a tiny run; `training` keys win over quick defaults."""
    settings = {
        "max_steps": 6, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "learning_rate": 1e-2,
        "eval_steps": 3, "logging_steps": 2, "seed": 7,
    } | training  # fmt: skip
    lines = [f"  {key}: {json.dumps(value)}" for key, value in settings.items()]
    sections = [
        f"model:\n  name_or_path: {model}",
        f"dataset:\n  name_or_path: {data}\n  template: rinna\n  max_length: 128\n  val_size: 4",
        "training:\n" + "\n".join(lines),
        "gpu_split:\n  gpus: none",
    ]
    if lora:
        sections.append(f"lora: {lora}")
    return "\n".join([*sections, more]) + "\n"


def new_run(text: str, name: str = "tiny") -> RunDirectory:
    """A run directory as `llmtui run` makes it; `text` is a preset."""
    return create_run(
        runs_folder(), resolve(parse_preset(text)), name=name, preset_name=name, task="finetune", description="",
        command=[],
    )  # fmt: skip


def attempt(directory: RunDirectory, **fields: Any) -> int:
    """Write the next `attempts/N.yaml`, continuing from the newest whole checkpoint unless fields say otherwise."""
    number = directory.last_attempt() + 1
    found = find_valid(directory)
    if "checkpoint" not in fields and found.path is not None:
        fields |= {"checkpoint": str(found.path.relative_to(directory.path)), "from_step": found.step}
    write_attempt(directory, AttemptInfo(attempt=number, started=time.time(), **fields))
    return number


def work(directory: RunDirectory, **fields: Any) -> int:
    """Run the next attempt in this process; the exit code."""
    from llmtui.core.worker.__main__ import _run
    from llmtui.core.worker.session import Session

    number = attempt(directory, **fields)
    session = Session(directory, number)
    try:
        return _run(session, number)
    finally:
        session.close()


def work_apart(directory: RunDirectory, prepare: Callable[[], None], listen: bool = False, **fields: Any) -> int:
    """Run the next attempt in a forked process (torch is imported already, with one thread); its pid.

    Args:
        prepare: called in the child first; what it patches stays there.
        listen: set the signals and the watching thread up, as the real entry does.
    """
    from llmtui.core.worker.__main__ import _run
    from llmtui.core.worker.session import Session

    number = attempt(directory, **fields)
    pid = os.fork()
    if pid:
        return pid
    try:
        with directory.output.open("ab") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        prepare()
        session = Session(directory, number)
        if listen:
            session.listen()
        os._exit(_run(session, number))
    finally:
        os._exit(70)


def end_of(pid: int, limit: float = 120) -> int:
    """Wait for a forked worker: its exit code, negative for a signal."""
    end = time.monotonic() + limit
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(f"the worker did not end within {limit} s")
        time.sleep(0.01)


def before_call(owner: Any, name: str, act: Callable[..., None]) -> None:
    """Patch a method: `act` is called with its arguments first. For forked children, so nothing is put back."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act(*args, **kwargs)
        return real(*args, **kwargs)

    setattr(owner, name, wrapped)


def die_at_step(step: int) -> Callable[[], None]:
    """SIGKILL from inside, when a step has been computed and nothing of it has been written."""
    from llmtui.core.worker.steps import StepLog

    def act(_: Any, number: int, *__: Any) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: before_call(StepLog, "end_step", act)


def events(directory: RunDirectory) -> list[ev.EventBase]:
    """All worker events."""
    return list(EventReader(directory.events).read_new())


def of(directory: RunDirectory, kind: type[E]) -> list[E]:
    """The worker events of one kind."""
    return [event for event in events(directory) if isinstance(event, kind)]


def curve(directory: RunDirectory) -> dict[int, tuple[float | None, float, int, int]]:
    """Loss, learning rate, tokens and trained tokens by step; a step run twice counts as it was run last."""
    return {e.step: (e.loss, e.learning_rate, e.tokens, e.trained_tokens) for e in of(directory, ev.Step)}


def wait_for(condition: Callable[[], Any], what: str, limit: float = 60) -> None:
    """Wait until the condition gives something true."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def error_of(directory: RunDirectory) -> ev.ErrorEvent:
    """The one error of a run."""
    (error,) = of(directory, ev.ErrorEvent)
    return error
