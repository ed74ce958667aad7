"""A hub model brought into the local cache, with bytes counted, before it is loaded from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

Progress = Callable[[int, int | None], None]

_TIMEOUT_SECONDS: Final = 20.0
_ENDINGS: Final = (".json", ".jinja", ".model", ".txt", ".tiktoken", ".spm")


def wanted_files(names: Sequence[str], code: bool, *, weights: bool = True) -> list[str]:
    """The files `from_pretrained` reads: weights as safetensors where there are any, tokenizer, settings.

    Args:
        names: all files of the repository.
        code: whether the model's own Python files may be used.
        weights: without them, what a tokenizer and a config need is left.
    """
    top = [name for name in names if "/" not in name and not name.startswith("consolidated")]
    shards = [name for name in top if name.endswith(".safetensors")]
    if not shards:
        shards = [name for name in top if name.startswith("pytorch_model") and name.endswith(".bin")]
    others = [name for name in top if name.endswith(_ENDINGS) or (code and name.endswith(".py"))]
    return sorted({*(shards if weights else ()), *others})


def download(
    name: str, revision: str | None, code: bool, on_progress: Progress, *, weights: bool = True
) -> Path:  # fmt: skip
    """Fetch what is missing of a hub model; the folder in the local cache to load it from.

    From there nothing asks the hub again, so that a network that goes away meanwhile changes nothing.

    Raises:
        Exception: the hub's own errors; `failures.hub_error` names them.
    """
    from huggingface_hub import HfApi, snapshot_download

    siblings = HfApi().model_info(name, revision=revision, timeout=_TIMEOUT_SECONDS).siblings or []
    patterns = wanted_files([sibling.rfilename for sibling in siblings], code, weights=weights)
    return Path(snapshot_download(name, revision=revision, allow_patterns=patterns, tqdm_class=_bar(on_progress)))


def downloaded(name: str, revision: str | None) -> Path | None:
    """The folder of a hub model in the local cache, without asking the hub; None when it is not there."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except Exception:
        return None
    return folder if (folder / "config.json").is_file() else None


def _bar(on_progress: Progress) -> type[Any]:
    """A silent progress bar class that passes bytes on.

    huggingface_hub 2.4 counts bytes written in one bar and bytes received, the lower number, in another, and files in
    a third; only the first is passed on.
    """
    from tqdm import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._counted = kwargs.get("unit") == "B" and kwargs.get("desc") != "Downloading bytes"
            kwargs.pop("name", None)
            super().__init__(*args, **(kwargs | {"disable": True}))
            self._done = int(kwargs.get("initial") or 0)

        def update(self, n: float | None = 1) -> bool | None:
            if self._counted:
                self._done += int(n or 0)
                on_progress(self._done, int(self.total) if self.total else None)
            return None

    return Bar
