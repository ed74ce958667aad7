"""Records of a hub set, read batch by batch from the set's table on disk; what a hub refuses, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from llmtui.core.data.records import ClassId, Record, Written
from llmtui.core.errors import DataError, LlmtuiError, MachineError

_BATCH_ROWS: Final = 1000
_PLACE: Final = "dataset.name_or_path"


def split_revision(name: str) -> tuple[str, str | None]:
    """`someone/set@v1` as its id and its revision, the Hub's own notation; None without one."""
    identity, _, revision = name.partition("@")
    return identity, revision or None


def hub_records(name: str, config: str | None, split: str) -> Iterator[Record]:
    """The rows of a hub set, one after the other; what is in memory does not grow with the set.

    Args:
        name: a hub id, with `@REVISION` when it is not the main branch.

    Raises:
        DataError: there is no such set, config or split.
        MachineError: the hub cannot be reached, or refuses.
    """
    import datasets

    datasets.disable_progress_bars()
    identity, revision = split_revision(name)
    try:
        loaded = datasets.load_dataset(identity, config, split=split, revision=revision)
    except Exception as error:
        raise set_error(name, error) from error
    classes = {name: feature.names for name, feature in loaded.features.items() if hasattr(feature, "int2str")}
    number = 0
    for batch in loaded.with_format("arrow").iter(_BATCH_ROWS):
        for row in batch.to_pylist():
            number += 1
            yield Record(f"{identity}, row {number}", _fields(row, classes))


def _fields(row: dict[str, Any], classes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    fields = {k: v if v is None or isinstance(v, str | list | dict) else Written(v) for k, v in row.items()}
    named = {k: ClassId.of(row[k], names) for k, names in classes.items() if isinstance(row.get(k), int)}
    return fields | named


def set_error(name: str, error: Exception) -> LlmtuiError:
    """Why a data set could not be loaded."""
    text = f"{type(error).__name__}: {error}"
    if "gated" in text.lower() or "401" in text or "403" in text:
        return MachineError(f"access to the data set {name} is refused", place=_PLACE,
                            hint="accept its terms on its hub page, then `hf auth login` or set HF_TOKEN")  # fmt: skip
    if "DatasetNotFound" in text or "doesn't exist" in text:
        return DataError(f'there is no file, folder or hub set "{name}" that can be reached from here',
                         place=_PLACE, hint="check the name and the network")  # fmt: skip
    if any(word in text for word in ("Connection", "offline", "Offline", "resolve", "timed out", "LocalEntryNotFound")):
        return MachineError(f"the hub cannot be reached for the data set {name}", place=_PLACE,
                            hint="check the network, or name a local file")  # fmt: skip
    return DataError(f"the data set {name} cannot be loaded: {text.splitlines()[0][:200]}",
                     place=_PLACE, hint="check name, config and split")  # fmt: skip
