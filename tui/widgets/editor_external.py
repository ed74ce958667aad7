"""A text in the user's own editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from llmtui.core.errors import MachineError


def editor_command() -> list[str]:
    """`$VISUAL`, `$EDITOR`, or what the machine has.

    Raises:
        MachineError: there is none.
    """
    for variable in ("VISUAL", "EDITOR"):
        value = os.environ.get(variable, "").strip()
        if value:
            try:
                return shlex.split(value)
            except ValueError as error:
                raise MachineError(f"${variable} cannot be read: {error}", hint=f"export {variable}=nano") from error
    for name in ("sensible-editor", "nano", "vim", "vi"):
        if shutil.which(name):
            return [name]
    raise MachineError("there is no text editor", hint="export EDITOR=nano, or the editor you like")


def edit_text(text: str, name: str) -> str:
    """Have the text edited in the terminal as it is now; the text afterwards.

    Args:
        name: a file name that tells the editor the kind of text.

    Raises:
        MachineError: there is no editor, or it failed (the text is unchanged then), or what it left is not UTF-8.
    """
    command = editor_command()
    with tempfile.TemporaryDirectory(prefix="llmtui-edit-") as folder:
        path = Path(folder) / (name.replace("/", "_") or "preset.yaml")
        path.write_bytes(text.encode())
        try:
            code = subprocess.run([*command, str(path)], check=False).returncode
        except OSError as error:
            raise MachineError(
                f"{command[0]} cannot be started: {error.strerror}", hint="export EDITOR=nano"
            ) from error
        if code != 0:
            raise MachineError(f"{command[0]} ended with {code}; nothing is changed", hint="E tries again")
        try:
            return path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise MachineError(f"the edited text cannot be read: {error.strerror}", place=str(path)) from error
        except UnicodeDecodeError as error:
            raise MachineError("the edited text is not UTF-8; nothing is changed", hint="save it as UTF-8") from error
