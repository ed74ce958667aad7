"""How to go on with a run and how to use its result, as commands to copy."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from llmtui.core.runs.facts import Summary
from llmtui.core.runs.state import RESUMABLE_STATES


@dataclass(frozen=True, slots=True)
class Recipe:
    """One thing to do, and the text that does it."""

    purpose: str
    text: str
    language: str = "sh"


def recipes(facts: Summary) -> list[Recipe]:
    """What makes sense for this run, most wanted first."""
    found = []
    if facts.state in RESUMABLE_STATES:
        found.append(Recipe("To go on from the last checkpoint", f"llmtui resume {shlex.quote(facts.id)}"))
    if facts.result is None:
        return found
    folder, adapter = f"{facts.directory}/{facts.result.path}", facts.result.kind == "adapter"
    found.append(Recipe("With transformers", transformers(folder, adapter=adapter), "python"))
    found.append(Recipe("With vLLM", vllm(folder, _base(facts), adapter=adapter)))
    found.append(Recipe("With llama.cpp", llama_cpp(facts, folder, adapter=adapter)))
    if adapter:
        merged = f"llmtui merge {shlex.quote(facts.id)} -o {shlex.quote(facts.name + '-merged')}"
        found.append(Recipe("Merged into the base model, as safetensors", merged))
    found.append(Recipe("To fetch it from this host", rsync(facts, folder)))
    found.append(Recipe("To train it further, as a new run", _further(facts)))
    return found


def transformers(folder: str, *, adapter: bool) -> str:
    """Loading the result in Python."""
    quoted = json.dumps(folder, ensure_ascii=False)  # a Python literal too
    kind = "AutoPeftModelForCausalLM" if adapter else "AutoModelForCausalLM"
    imports = "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
    if adapter:
        imports = f"from peft import {kind}\nfrom transformers import AutoTokenizer\n"
    return (
        f"{imports}\n"
        f'model = {kind}.from_pretrained({quoted}, device_map="auto")\n'
        f"tokenizer = AutoTokenizer.from_pretrained({quoted})"
    )


def vllm(folder: str, base: str, *, adapter: bool) -> str:
    """Serving it with vLLM; an adapter beside its base."""
    if adapter:
        return f"vllm serve {shlex.quote(base)} --enable-lora --lora-modules {shlex.quote('tuned=' + folder)}"
    return f"vllm serve {shlex.quote(folder)}"


def llama_cpp(facts: Summary, folder: str, *, adapter: bool) -> str:
    """A GGUF file, made with the script of llama.cpp's repository; an adapter is merged first."""
    out, lines = f"{facts.name}.gguf", []
    if adapter:
        folder = f"{facts.name}-merged"
        lines.append(f"llmtui merge {shlex.quote(facts.id)} -o {shlex.quote(folder)}")
    lines.append(f"python convert_hf_to_gguf.py {shlex.quote(folder)} --outfile {shlex.quote(out)}")
    lines.append(f"llama-cli -m {shlex.quote(out)}")
    return "\n".join(lines)


def rsync(facts: Summary, folder: str) -> str:
    """Fetching the result to where the command is given."""
    source = f"{facts.user}@{facts.host}:{folder}/"
    return f"rsync -avP {shlex.quote(source)} {shlex.quote(facts.name + '/')}"


def _base(facts: Summary) -> str:
    return facts.plan.base_model if facts.plan and facts.plan.base_model else "BASE-MODEL"


def _further(facts: Summary) -> str:
    training = facts.settings.get("training") or {}
    steps, epochs = training.get("max_steps"), training.get("num_train_epochs")
    wanted = f"num_train_epochs={float(epochs) + 2:g}" if isinstance(epochs, int | float) else "num_train_epochs=5"
    if isinstance(steps, int):
        wanted = f"max_steps={2 * steps}"
    return f"llmtui resume {shlex.quote(facts.id)} --set training.{wanted}"
