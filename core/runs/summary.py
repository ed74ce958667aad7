"""The hand-over of a run as Markdown and HTML, from the same facts as `show` and `export --format json`.

Text from outside is escaped; access tokens are scrubbed; what is not known is "–".
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Sequence
from typing import Any, Final

from llmtui.core import words
from llmtui.core.text import safe_text

_TOKEN: Final = re.compile(r"\bhf_[A-Za-z0-9]{8,}")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")
Facts = dict[str, Any]


def scrub(text: str) -> str:
    """Access tokens taken out."""
    return _TOKEN.sub("hf_…", text)


def md(value: object) -> str:
    """A value as Markdown text: one line, nothing in it is markup."""
    if value is None or value == "":
        return words.UNKNOWN
    return _MARKDOWN.sub(r"\\\1", scrub(safe_text(str(value))))


def code(text: str) -> str:
    """Text as a Markdown code block that it cannot end."""
    clean = scrub(safe_text(text, newlines=True)).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{clean}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped already."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def summary_markdown(facts: Facts) -> str:
    """The whole summary."""
    parts = [f"# {md(facts['id'])}", md(facts["description"]) if facts["description"] else "", _headline(facts)]
    for title, body in (
        ("Numbers", _numbers(facts)), ("Memory", _memory(facts)), ("Evaluations", _evals(facts)),
        ("Answers, before and after", _samples(facts)), ("Data and settings", _data(facts)),
        ("Machine and versions", _machine(facts)), ("Attempts and warnings", _attempts(facts)),
        ("Checkpoints and result", _files(facts)), ("Go on, and use it", _use(facts)),
        ("Preset, rerunnable", code(facts["preset_yaml"] or "")),
    ):  # fmt: skip
        if body:
            parts.append(f"## {title}\n\n{body}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(facts: Facts) -> str:
    cause = f" — {md(facts['cause'])}" if facts["cause"] else ""
    steps = f"{words.count(facts['step'])} of {words.count(facts['total_steps'])} steps"
    return f"**{facts['state']}**{cause}. {steps}, loss {words.number(facts['first_loss'])} → {words.number(facts['loss'])}."


def _numbers(facts: Facts) -> str:
    plan = facts["plan"] or {}
    rows = [
        ("steps", f"{words.count(facts['step'])} of {words.count(facts['total_steps'])}"),
        ("epochs", words.number(facts["epoch"])),
        ("time in training, pauses included", words.duration(facts["training_seconds"])),
        ("it/s (optimizer steps, without pauses)", words.rate(facts["it_per_second"])),
        ("overall it/s (steps ÷ whole time, as published tables)", words.rate(facts["overall_it_per_second"])),
        ("tokens/s (real ones, without padding)", words.rate(facts["tokens_per_second"])),
        ("tokens seen", words.count(facts["total_tokens"])),
        ("loss, first → last", f"{words.number(facts['first_loss'])} → {words.number(facts['loss'])}"),
        ("eval loss, last / best", f"{words.number(facts['eval_loss'])} / {words.number(facts['best_eval_loss'])}"),
        ("effective batch", _batch(plan)),
        ("trainable parameters", _parameters(plan)),
    ]
    rows += [(f"time {name.replace('_', ' ')}", words.duration(s)) for name, s in facts["seconds_by_phase"].items()]
    return table(("what", "value"), rows)


def _batch(plan: Facts) -> str:
    if not plan:
        return words.UNKNOWN
    return (
        f"{plan['effective_batch']} ({plan['per_device_train_batch_size']} × accumulation "
        f"{plan['gradient_accumulation_steps']} × {plan['processes']} process)"
    )


def _parameters(plan: Facts) -> str:
    if not plan:
        return words.UNKNOWN
    share = 100 * plan["trainable_parameters"] / max(1, plan["total_parameters"])
    return f"{words.count(plan['trainable_parameters'])} of {words.count(plan['total_parameters'])} ({share:.3g} %)"


def _memory(facts: Facts) -> str:
    torch_by_index = {m["index"]: m for m in facts["memory_peaks"]}
    at_end = {g["index"]: g for g in facts["gpu_at_end"]}
    rows: list[tuple[str, ...]] = []
    for peak in facts["hardware_peaks"]:
        # The allocator counts visible cards from 0, NVML all cards by PCI order: joined by position in the run.
        mine = torch_by_index.get(len(rows), {})
        end = at_end.get(peak["index"], {})
        rows.append(
            (f"{peak['index']} {md(peak.get('name'))}", words.size(mine.get("peak_allocated")),
             words.size(mine.get("peak_reserved")), words.size(peak.get("this_run")), words.size(peak.get("used")),
             words.size(end.get("used")), words.size(peak.get("total")))
        )  # fmt: skip
    if rows:
        return table(("GPU", "peak allocated", "peak reserved", "peak of this run", "peak on the card",
                      "on the card at the end", "card"), rows)  # fmt: skip
    rss = (facts["cpu"] or {}).get("worker_rss")
    return f"No GPU was used. The worker held {words.size(rss)} of the machine's memory at the last look."


def _evals(facts: Facts) -> str:
    rows = [
        (words.count(e["step"]), words.number(e.get("loss")), words.number(e.get("perplexity")),
         words.percent(e.get("accuracy"), 1), words.count(e.get("rows", 0)), "best" if e.get("best") else "")
        for e in facts["evals"]
    ]  # fmt: skip
    return table(("step", "loss", "perplexity", "token accuracy", "rows", ""), rows) if rows else ""


def _samples(facts: Facts) -> str:
    samples = facts["samples"]
    if not samples:
        return ""
    first, last = min(s["step"] for s in samples), max(s["step"] for s in samples)
    by_step = {(s["step"], s["index"]): s for s in samples}
    rows = []
    for index in sorted({s["index"] for s in samples}):
        before, after = by_step.get((first, index)), by_step.get((last, index))
        prompt = (before or after or {}).get("prompt", "")
        rows.append((md(prompt), md(_shortened(before)), md(_shortened(after))))
    return table(("prompt", f"step {first}", f"step {last}"), rows)


def _shortened(sample: Facts | None) -> str | None:
    if sample is None:
        return None
    text = sample["text"].replace("\n", " ⏎ ").strip()
    return text if len(text) <= 300 else f"{text[:300]} …"


def _data(facts: Facts) -> str:
    plan = facts["plan"] or {}
    if not plan:
        return ""
    dropped = ", ".join(f"{md(reason)}: {count}" for reason, count in plan.get("dropped", {}).items()) or "none"
    rows = [
        ("model", md(plan.get("base_model"))),
        ("quantisation, computed in", f"{plan.get('quantization', 'none')}, {plan['dtype']}"),
        ("attention", md(plan["attention"])),
        ("rows, training / validation", f"{words.count(plan['train_rows'])} / {words.count(plan['val_rows'])}"),
        ("rows dropped", dropped),
        (
            "tokens per epoch, trained ones",
            f"{words.count(plan.get('tokens_per_epoch'))}, {words.count(plan.get('train_tokens'))}",
        ),
        ("hash of tokens and labels", md(plan.get("data_hash"))),
        ("warm-up steps", words.count(plan["warmup_steps"])),
    ]
    notes = "".join(f"\n- {md(note)}" for note in plan.get("notes", []))
    return table(("what", "value"), rows) + (f"\n{notes}" if notes else "")


def _machine(facts: Facts) -> str:
    last = facts["attempts"][-1] if facts["attempts"] else {}
    gpus = ", ".join(f"{g['index']} {g['name']} ({g['uuid']})" for g in last.get("gpus", [])) or "none (CPU)"
    versions = ", ".join(f"{name} {version}" for name, version in last.get("versions", {}).items())
    git = last.get("git", {})
    commit = f"{git['commit']}{' with changes' if git.get('changed') else ''}" if git else None
    rows = [
        ("host", md(facts["host"])), ("GPUs", md(gpus)), ("driver", md(last.get("driver"))),
        ("Python", md(last.get("python"))), ("libraries", md(versions)), ("git", md(commit)),
        ("command", md(shlex.join(facts["command"])) if facts["command"] else words.UNKNOWN),
    ]  # fmt: skip
    return table(("what", "value"), rows)


def _attempts(facts: Facts) -> str:
    lines = []
    for attempt in facts["attempts"]:
        origin = f"from step {attempt['from_step']}" if attempt.get("from_step") else "from the beginning"
        lines.append(f"- attempt {attempt['attempt']}, {words.clock(attempt['started'])}, {origin}")
    if facts["parent"]:
        lines.append(f"- forked from {md(facts['parent'])} at step {facts['parent_step']}")
    lines += [f"- {md(text)}" for text in facts["warnings"]]
    lines += [f"- the loss was {bad['kind']} at step {bad['step']}" for bad in facts["bad_steps"][:20]]
    for batch in facts["batch_sizes"]:
        lines.append(
            f"- micro-batch {batch['per_device_train_batch_size']} from step {batch['step']}: {md(batch['cause'])}"
        )
    return "\n".join(lines)


def _files(facts: Facts) -> str:
    rows = [(md(c["path"]), words.count(c["step"]), words.size(c["bytes"])) for c in facts["checkpoints"]]
    result = facts["result"]
    if result:
        rows.append(
            (
                f"{md(result['path'])}/ (xxh3-128 {result['hash']})",
                words.count(result["step"]),
                words.size(result["bytes"]),
            )
        )
    return table(("path", "step", "size"), rows) if rows else ""


def _use(facts: Facts) -> str:
    lines = []
    if facts["state"] in ("stopped", "failed", "interrupted"):
        lines.append(f"To go on:\n\n{code('llmtui resume ' + shlex.quote(facts['id']))}")
    result = facts["result"]
    if result:
        folder = f"{facts['directory']}/{result['path']}"
        lines.append(f"With transformers:\n\n{code(_transformers(folder, result['kind']))}")
        lines.append(f"With vLLM:\n\n{code(_vllm(folder, facts, result['kind']))}")
        lines.append(f"With llama.cpp:\n\n{code(_llama_cpp(folder, facts, result['kind']))}")
        here = f"{facts['user']}@{facts['host']}:{folder}/"
        lines.append(
            f"To fetch it from here:\n\n{code('rsync -avP ' + shlex.quote(here) + ' ' + shlex.quote(facts['name'] + '/'))}"
        )
    return "\n\n".join(lines)


def _transformers(folder: str, kind: str) -> str:
    if kind == "adapter":
        return (
            "from peft import AutoPeftModelForCausalLM\nfrom transformers import AutoTokenizer\n\n"
            f"model = AutoPeftModelForCausalLM.from_pretrained({folder!r})\n"
            f"tokenizer = AutoTokenizer.from_pretrained({folder!r})"
        )
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f"model = AutoModelForCausalLM.from_pretrained({folder!r})\n"
        f"tokenizer = AutoTokenizer.from_pretrained({folder!r})"
    )


def _base(facts: Facts) -> str:
    return str((facts["plan"] or {}).get("base_model") or "BASE")


def _vllm(folder: str, facts: Facts, kind: str) -> str:
    if kind == "adapter":
        return f"vllm serve {shlex.quote(_base(facts))} --enable-lora --lora-modules {shlex.quote('tuned=' + folder)}"
    return f"vllm serve {shlex.quote(folder)}"


def _llama_cpp(folder: str, facts: Facts, kind: str) -> str:
    if kind == "adapter":
        merged = f"{facts['name']}-merged"
        return (
            f"llmtui merge {shlex.quote(facts['id'])} -o {shlex.quote(merged)}\n"
            f"python convert_hf_to_gguf.py {shlex.quote(merged)} --outfile {shlex.quote(facts['name'] + '.gguf')}"
        )
    return f"python convert_hf_to_gguf.py {shlex.quote(folder)} --outfile {shlex.quote(facts['name'] + '.gguf')}"


def summary_text(facts: Facts) -> str:
    """The summary for a terminal: what a person asks first, without Markdown."""
    lines = [facts["id"], f"  {facts['state']}" + (f": {facts['cause']}" if facts["cause"] else "")]
    rows = [
        ("preset", facts["preset"]),
        ("steps", f"{words.count(facts['step'])} of {words.count(facts['total_steps'])}"),
        ("loss", f"{words.number(facts['first_loss'])} → {words.number(facts['loss'])}"),
        ("eval loss", f"{words.number(facts['eval_loss'])}, best {words.number(facts['best_eval_loss'])}"),
        (
            "it/s",
            f"{words.rate(facts['it_per_second'])} without pauses, {words.rate(facts['overall_it_per_second'])} overall",
        ),
        ("tokens/s", words.rate(facts["tokens_per_second"])),
        ("training", words.duration(facts["training_seconds"])),
        ("checkpoints", ", ".join(str(c["step"]) for c in facts["checkpoints"]) or words.UNKNOWN),
        ("result", f"{facts['directory']}/{facts['result']['path']}" if facts["result"] else words.UNKNOWN),
        ("directory", facts["directory"]),
    ]
    lines += [f"  {name:<12} {scrub(safe_text(str(value)))}" for name, value in rows]
    last = max((s["step"] for s in facts["samples"]), default=None)
    for sample in (s for s in facts["samples"] if s["step"] == last):
        lines.append(f"  {safe_text(sample['prompt'])} → {safe_text(_shortened(sample) or '')}")
    lines += [f"  warning: {safe_text(text)}" for text in facts["warnings"]]
    if facts["hint"]:
        lines.append(f"  {facts['hint']}")
    return "\n".join(lines)


def summary_html(facts: Facts, markdown: str, picture: str) -> str:
    """A page that needs nothing else: the loss picture inline, the Markdown as it is.

    Args:
        picture: an SVG document of our own making.
    """
    title = html.escape(scrub(safe_text(facts["id"])))
    svg = picture[picture.find("<svg") :] if "<svg" in picture else ""
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "pre{white-space:pre-wrap;background:#f4f4f4;padding:1em}svg{max-width:100%;height:auto}</style>\n"
        f"{svg}\n<pre>{html.escape(markdown)}</pre>\n</html>\n"
    )
