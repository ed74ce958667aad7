"""What a start would fail of later: the model's files and the cards, looked at before anything is created."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from llmtui.core.errors import DataError
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.preset import Preset
from llmtui.core.preset.paths import looks_like_path
from llmtui.core.process.cards import candidates

_PLACE = "model.name_or_path"


def check_cards(preset: Preset, reader: NvmlReader | None = None) -> None:
    """The cards that the preset names are here.

    Raises:
        MachineError: one is not.
    """
    if isinstance(preset.gpu_split.gpus, list):
        cards, note = (reader or NvmlReader()).sample(())
        candidates(preset.gpu_split, cards, note)


def check_model(preset: Preset, base_folder: Path) -> None:
    """A model that is named by a path is there. Hub ids are left to the worker, `run:ID` to the launch.

    Raises:
        DataError: there is no such folder or file, or no model in it; the nearest name is suggested.
    """
    name = preset.model.name_or_path
    path = base_folder / Path(name).expanduser()
    if name.startswith("run:") or (path.is_file() and path.suffix.lower() == ".gguf"):
        return
    if path.is_dir():
        if not any((path / file).is_file() for file in ("config.json", "adapter_config.json")):
            files = sorted(path.glob("*.gguf"))
            hint = f"name the file: {files[0]}" if files else "a model's folder has a config.json"
            raise DataError(f"the folder {path} holds no model", place=_PLACE, hint=hint)
        return
    if "://" in name:
        owner = "/".join(name.partition("://")[2].split("/")[1:3])
        raise DataError(f"{name} is an address", place=_PLACE, hint=f"write its hub id: {owner or 'owner/model'}")
    if path.exists():
        raise DataError(f"{path} is no folder", place=_PLACE,
                        hint="name the folder that it is in, with its config.json, or a .gguf file")  # fmt: skip
    if looks_like_path(name) or name.count("/") > 1:
        what = "file" if path.suffix.lower() == ".gguf" else "folder"
        raise DataError(f"there is no {what} {path}", place=_PLACE, hint=_near(path))


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    near = get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    return f"did you mean {path.parent / near[0]}?" if near else "check model.name_or_path"
