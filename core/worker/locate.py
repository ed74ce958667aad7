"""Where a model's files are: a folder, a hub id, `run:ID`, a `.gguf` file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from llmtui.core.errors import DataError
from llmtui.core.home import runs_folder
from llmtui.core.preset.paths import looks_like_path
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import run_directories

INITIALISE: Final = "llmtui_initialise_from_config"
_PLACE: Final = "model.name_or_path"
_WEIGHTS: Final = ("*.safetensors", "*.bin")


@dataclass(frozen=True, slots=True)
class Location:
    """What `from_pretrained` is given.

    `adapter` is a PEFT adapter to be merged into the base first; `initialise` means random weights from the config;
    `fleeting` a base that another run or the cache owns, so that it may be gone one day; `hub_id` what the folder was
    downloaded from.
    """

    path: str
    adapter: Path | None = None
    initialise: bool = False
    gguf: Path | None = None
    hub_id: str = ""
    fleeting: bool = False
    said: str = ""

    @property
    def local(self) -> bool:
        """Whether it is a folder here, rather than a hub id."""
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
            raise DataError(f"there is no file {path}", place=_PLACE, hint=_near(path))
        return Location(str(path.parent), gguf=path, fleeting=True)
    if path.is_dir():
        return _of_folder(path)
    if path.exists():
        raise DataError(f"{path} is no folder", place=_PLACE,
                        hint="name the folder that it is in, with its config.json, or a .gguf file")  # fmt: skip
    if looks_like_path(name) or name.count("/") > 1:
        raise DataError(f"there is no folder {path}", place=_PLACE, hint=_near(path))
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
        raise DataError(f"the folder {path} holds no model", place=_PLACE, hint=hint)
    if not any(next(path.glob(pattern), None) for pattern in _WEIGHTS):
        if _json(config).get(INITIALISE) is True:
            return Location(str(path), initialise=True, said="the weights are initialised from the config, untrained")
        raise DataError(f"the folder {path} holds a config but no weights", place=_PLACE,
                        hint="download them (*.safetensors) into it")  # fmt: skip
    return Location(str(path))


def _of_adapter(path: Path, said: str) -> Location:
    base = str(_json(path / "adapter_config.json").get("base_model_name_or_path") or "")
    if not base:
        raise DataError(f"the adapter {path} does not name its base model", place=_PLACE, hint="name the base model")
    if Path(base).is_absolute() and not Path(base).is_dir():
        raise DataError(f"the base model of the adapter {path} is gone ({base})", place=_PLACE,
                        hint="put it back, or name another")  # fmt: skip
    found = locate(base, path)
    if found.adapter is not None:
        raise DataError(f"the base of the adapter {path} is an adapter itself", place=_PLACE,
                        hint="llmtui merge that one first")  # fmt: skip
    return Location(found.path, adapter=path, fleeting=True, said=f"{said}, merged into its base for this run")


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}", place=_PLACE, hint="download it again") from error
    return value if isinstance(value, dict) else {}


def _of_run(reference: str) -> Location:
    """The newest run of that id, name or preset that has a result; `@STEP` means its checkpoint."""
    name, _, step = reference.partition("@")
    runs = _matching(name)
    if not runs:
        raise DataError(f"there is no run {name}", place=_PLACE, hint="llmtui ls shows the runs")
    for directory in reversed(runs):
        for folder in (directory.checkpoints / f"checkpoint-{step}",) if step else (directory.model, directory.adapter):
            if folder.is_dir():
                said = f"the base is {'checkpoint ' + step if step else 'the result'} of {directory.id}"
                found = _of_adapter(folder, said) if (folder / "adapter_config.json").is_file() else _of_folder(folder)
                return Location(found.path, adapter=found.adapter, fleeting=True, said=found.said or said)
    missing = f"checkpoint {step}" if step else "result"
    raise DataError(f"run {runs[-1].id} has no {missing} yet", place=_PLACE,
                    hint=f"let it finish: llmtui resume {runs[-1].id}")  # fmt: skip


def _matching(name: str) -> list[RunDirectory]:
    everything = run_directories(runs_folder())
    if name == "last":
        return everything
    exact = [d for d in everything if d.id == name]
    if exact:
        return exact
    infos = {d: i for d in everything if (i := _info(d)) is not None}
    return [d for d, i in infos.items() if i.name == name] or [d for d, i in infos.items() if i.preset == name]


def _info(directory: RunDirectory) -> Any:
    try:
        return directory.info()
    except DataError:
        return None
