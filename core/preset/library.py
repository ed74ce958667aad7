"""Where presets are: the user's folder, `./presets`, the bundled ones; copies and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

from llmtui.core.errors import PresetError, Problem, RefusedError, UsageError
from llmtui.core.files import write_atomically
from llmtui.core.home import user_presets_folder
from llmtui.core.preset.editing import set_value
from llmtui.core.preset.leaves import value_at, walk_leaves
from llmtui.core.preset.paths import PATH_KEYS, absolute_at, absolute_sources
from llmtui.core.preset.reading import LoadedPreset, parse_preset
from llmtui.core.text import safe_text

Origin = Literal["user", "project", "bundled"]
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PresetEntry:
    """One preset of the library. `problem` is the first thing wrong with it, empty when it is valid."""

    name: str
    origin: Origin
    path: Path
    description: str
    problem: str = ""


def bundled_folder() -> Path:
    """The folder of the bundled presets."""
    import llmtui.presets

    return Path(next(iter(llmtui.presets.__path__)))


def _folders() -> list[tuple[Origin, Path]]:
    return [("user", user_presets_folder()), ("project", Path.cwd() / "presets"), ("bundled", bundled_folder())]


def _files() -> Iterator[tuple[Origin, Path]]:
    bundled = bundled_folder().resolve()
    for origin, folder in _folders():
        if not folder.is_dir() or (origin == "project" and folder.resolve() == bundled):
            continue
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")], key=lambda found: found.stem):
            if not path.name.startswith("."):
                yield origin, path


def list_presets() -> list[PresetEntry]:
    """Every preset: the user's, the project's, the bundled ones; broken ones are listed with their problem."""
    entries = []
    for origin, path in _files():
        try:
            loaded = parse_preset(_read(path), path)
            entries.append(PresetEntry(path.stem, origin, path, loaded.preset.description))
        except PresetError as error:
            entries.append(PresetEntry(path.stem, origin, path, "", str(error.problems[0])))
    return entries


def find_preset(reference: str) -> Path:
    """The file a reference means: a path when it has a `/` or ends in .yaml, else a name in the library.

    Raises:
        UsageError: there is none; the nearest name is suggested.
    """
    if "/" in reference or reference.endswith((".yaml", ".yml")):
        path = Path(reference).expanduser()
        if not path.is_file():
            near = get_close_matches(
                path.name,
                [p.name for p in path.parent.glob("*.y*ml") if p.is_file()] if path.parent.is_dir() else [],
                n=1,
            )
            hint = f"did you mean {path.parent / near[0]}?" if near else "llmtui presets shows what there is"
            raise UsageError(f"there is no preset file {reference}", hint=hint)
        return path.absolute()
    names: dict[str, Path] = {}
    for _, path in _files():
        names.setdefault(path.stem, path)
    if reference in names:
        return names[reference]
    near = get_close_matches(reference, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "llmtui presets shows what there is"
    raise UsageError(f'there is no preset "{reference}"', hint=hint)


def load_preset(reference: str, sets: Sequence[str] = ()) -> LoadedPreset:
    """Find, read and check a preset.

    Raises:
        UsageError: there is no such preset.
        PresetError: with every problem.
    """
    path = find_preset(reference)
    return parse_preset(_read(path), path, sets)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise PresetError([Problem(path.name, None, "", "", "this is no file", "name a YAML file")])
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        said = f"it cannot be read: {error.strerror}"
        raise PresetError([Problem(path.name, None, "", "", said, "check the file")]) from None
    if len(raw) > _MAX_BYTES:
        raise PresetError([Problem(path.name, None, "", "", "this is too large for a preset", "name a YAML file")])
    utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return raw.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = None if utf16 else raw.count(b"\n", 0, error.start) + 1
        raise PresetError([Problem(path.name, line, "", "", "the file is not UTF-8", "save it as UTF-8")]) from None


def preset_path(name: str) -> Path:
    """Where a user's preset of this name is kept.

    Raises:
        UsageError: the name cannot be a file's.
    """
    odd = name != safe_text(name).strip() or name.startswith((".", "-")) or any(c in name for c in "/\\@:")
    if odd or not name or len(name.encode()) > 80:
        raise UsageError(f"a preset cannot be named {name!r}", hint="use letters, digits, '.', '_' and '-'")
    return user_presets_folder() / f"{name.removesuffix('.yaml')}.yaml"


def copy_to_user(source: str | Path, name: str, text: str | None = None) -> Path:
    """Copy a preset (or its edited text) into the user's folder; relative paths in it are made absolute.

    Raises:
        RefusedError: there is one of this name already.
    """
    path = source if isinstance(source, Path) else find_preset(source)
    target = preset_path(name)
    if target.exists():
        raise RefusedError(f'you have a preset "{name}" already', place=str(target), hint="choose another name")
    written = _read(path) if text is None else text
    loaded = parse_preset(written, path)
    for key in PATH_KEYS:
        value = value_of(loaded, key)
        if isinstance(value, str) and (moved := absolute_at(key, value, path.parent)) != value:
            written = set_value(written, key, moved)
    sources = [source.model_dump(exclude_unset=True) for source in loaded.preset.dataset.sources]
    if (moved_sources := absolute_sources(sources, path.parent)) != sources:
        written = set_value(written, "dataset.sources", moved_sources)
    write_atomically(target, written.encode())
    return target


def differences(a: LoadedPreset, b: LoadedPreset) -> list[tuple[str, Any, Any]]:
    """The keys whose values differ, with both values; a section that one side lacks gives None there."""
    return [
        (leaf.key, left, right)
        for leaf in walk_leaves()
        if (left := value_of(a, leaf.key)) != (right := value_of(b, leaf.key))
    ]


def value_of(loaded: LoadedPreset, key: str) -> Any:
    """The value of a dotted key; None when its section is absent."""
    return value_at(loaded.preset, key)
