"""Where a model's files are: a folder, a hub id, `run:ID`, a `.gguf` file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from llmtui.core.errors import DataError, UsageError
from llmtui.core.home import runs_folder
from llmtui.core.runs.reader import find_run, read_state

INITIALISE: Final = "llmtui_initialise_from_config"
_WEIGHTS: Final = ("*.safetensors", "*.bin")


@dataclass(frozen=True, slots=True)
class Location:
    """What `from_pretrained` is given.

    `adapter` is a PEFT adapter to be merged into the base first; `initialise` means random weights from the config.
    """

    path: str
    adapter: Path | None = None
    initialise: bool = False
    gguf: Path | None = None
    said: str = ""

    @property
    def local(self) -> bool:
        """Whether it is a folder here."""
        return Path(self.path).is_dir()


def locate(name: str, base_folder: Path) -> Location:
    """Find a model.

    Raises:
        DataError: no such folder, or it holds no model; a near name is suggested.
    """
    if name.startswith("run:"):
        return _of_run(name.removeprefix("run:"))
    path = base_folder / Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise DataError("there is no such file", place=str(path), hint=_near(path))
        return Location(str(path.parent), gguf=path)
    if path.is_dir():
        return _of_folder(path)
    if name.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise DataError("there is no such folder", place=str(path), hint=_near(path))
    return Location(name)


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    near = get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    return f"did you mean {path.parent / near[0]}?" if near else "check model.name_or_path"


def _of_folder(path: Path) -> Location:
    if (path / "adapter_config.json").is_file():
        return _of_adapter(path, f"{path.name} is an adapter")
    config = path / "config.json"
    if not config.is_file():
        files = sorted(path.glob("*.gguf"))
        hint = f"name the file: {files[0]}" if files else "a model folder has a config.json"
        raise DataError("the folder holds no model", place=str(path), hint=hint)
    if not any(next(path.glob(pattern), None) for pattern in _WEIGHTS):
        if json.loads(config.read_text("utf-8")).get(INITIALISE) is True:
            return Location(str(path), initialise=True, said="the weights are initialised from the config, untrained")
        raise DataError("the folder holds a config but no weights", place=str(path),
                        hint="download them (*.safetensors) into it")  # fmt: skip
    return Location(str(path))


def _of_adapter(path: Path, said: str) -> Location:
    base = str(json.loads((path / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path") or "")
    if not base:
        raise DataError("the adapter does not name its base model", place=str(path), hint="name the base model")
    found = locate(base, path) if not Path(base).is_absolute() else _existing(Path(base))
    if found.adapter is not None:
        raise DataError("the adapter's base is an adapter itself", place=str(path), hint="llmtui merge that one first")
    return Location(found.path, adapter=path, said=f"{said}, merged into its base for this run")


def _existing(path: Path) -> Location:
    if not path.is_dir():
        raise DataError(
            f"the adapter's base model {path} is gone", place=str(path), hint="put it back, or name another"
        )
    return _of_folder(path)


def _of_run(reference: str) -> Location:
    try:
        directory, _, _ = find_run(runs_folder(), reference)
    except UsageError as error:
        raise DataError(f"model.name_or_path names run:{reference}, and there is no such run",
                        place="model.name_or_path", hint="llmtui ls shows the runs") from error  # fmt: skip
    state = read_state(directory)
    if directory.model.is_dir():
        return Location(str(directory.model), said=f"the base is the result of {directory.id}")
    if directory.adapter.is_dir():
        return _of_adapter(directory.adapter, f"the base is the result of {directory.id}")
    raise DataError(f"run {directory.id} has no result ({state.state})", place="model.name_or_path",
                    hint=f"let it finish: llmtui resume {directory.id}")  # fmt: skip
