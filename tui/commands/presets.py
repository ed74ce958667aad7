"""`llmtui presets`: list, show, check, make, edit, compare."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from llmtui.core.errors import MachineError
from llmtui.tui.commands.options import Json, Sets
from llmtui.tui.commands.output import columns, say, say_json

Name = Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a path ending in .yaml.")]
group = typer.Typer(help="List, show, check, make, edit and compare presets.", rich_markup_mode=None)


@group.callback(invoke_without_command=True)
def _root(context: typer.Context, as_json: Json = False) -> None:
    if context.invoked_subcommand is None:
        ls(as_json)


@group.command()
def ls(as_json: Json = False) -> None:
    """The presets: yours, the project's (./presets), the bundled ones."""
    from llmtui.core.preset import list_presets

    entries = list_presets()
    if as_json:
        say_json([{"name": e.name, "origin": e.origin, "path": str(e.path), "description": e.description,
                   "problem": e.problem} for e in entries])  # fmt: skip
        return
    rows = [[e.name, e.origin, f"broken: {e.problem}" if e.problem else _short(e.description)] for e in entries]
    say(columns(("preset", "from", "what"), rows))


def _short(text: str, limit: int = 90) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@group.command()
def show(preset: Name, sets: Sets = None, as_json: Json = False) -> None:
    """A preset with everything written out, as a run of it would keep it."""
    from llmtui.core.preset import load_preset, resolve, resolved_preset

    loaded = load_preset(preset, sets or ())
    if as_json:
        say_json(resolved_preset(loaded).model_dump(mode="json"))
    else:
        say(resolve(loaded).rstrip())


@group.command()
def check(preset: Name, sets: Sets = None, as_json: Json = False) -> None:
    """Every problem of a preset at once; nothing is loaded."""
    from llmtui.core.preset import load_preset, unsupported

    loaded = load_preset(preset, sets or ())
    later = unsupported(loaded.preset, loaded.path.name if loaded.path else "preset", loaded.lines)
    if as_json:
        say_json({"valid": True, "warnings": list(loaded.warnings), "later": [str(p) for p in later]})
        return
    say(f"{loaded.name} is valid")
    for warning in loaded.warnings:
        say(f"  note: {warning}")
    for problem in later:
        say(f"  later: {problem}")


@group.command()
def new(
    name: Annotated[str, typer.Argument(help="The new preset's name.")],
    source: Annotated[str, typer.Option("--from", metavar="PRESET", help="What to begin with.")] = "smollm2-135m",
    as_json: Json = False,
) -> None:
    """Copy a preset into your folder under a new name."""
    from llmtui.core.preset import copy_to_user

    path = copy_to_user(source, name)
    if as_json:
        say_json({"name": name, "path": str(path)})
    else:
        say(f"{path}\nto edit it: llmtui presets edit {name}")


@group.command()
def edit(preset: Name) -> None:
    """Open a preset in $EDITOR (a bundled one as a copy of yours), and check it afterwards."""
    import os
    import shlex
    import shutil
    import subprocess

    from llmtui.core.preset import copy_to_user, find_preset, load_preset
    from llmtui.core.preset.library import bundled_folder

    path = find_preset(preset)
    if path.resolve().is_relative_to(bundled_folder().resolve()):
        path = copy_to_user(path, path.stem)
        say(f"{preset} is bundled; your copy of it is {path}", error=True)
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    found = next((n for n in ("nano", "vim", "vi") if shutil.which(n)), None)
    command = shlex.split(named) if named else [found] if found else []
    if not command or shutil.which(command[0]) is None:
        raise MachineError(f"no editor was found{f' ({named})' if named else ''}", hint="set EDITOR")
    subprocess.run([*command, str(path)], check=False)
    load_preset(str(path))
    say(f"{path.stem} is valid")


@group.command()
def diff(a: Name, b: Annotated[str, typer.Argument(metavar="OTHER")], as_json: Json = False) -> None:
    """The keys in which two presets differ."""
    from dataclasses import replace

    from llmtui.core.preset import differences, load_preset, resolved_preset

    first, second = (replace(x, preset=resolved_preset(x)) for x in (load_preset(a), load_preset(b)))
    found = differences(first, second)
    if as_json:
        say_json([{"key": key, "a": left, "b": right} for key, left, right in found])
        return
    if not found:
        say("they do not differ")
        return
    say(columns(("key", first.name, second.name), [[key, _value(left), _value(right)] for key, left, right in found]))


def _value(value: Any) -> str:
    return _short("–" if value is None else str(value), 50)


def add(app: typer.Typer) -> None:
    """Register the group."""
    app.add_typer(group, name="presets")
