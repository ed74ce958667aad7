"""Rows to one padded batch, as lists."""

from __future__ import annotations

from collections.abc import Sequence

from llmtui.core.data.tokens import IGNORED


def collate(
    features: Sequence[dict[str, list[int]]], pad_id: int, pad_to: int | None = None
) -> dict[str, list[list[int]]]:
    """Right-padded `input_ids`, `attention_mask` and `labels`, each rows × longest (or `pad_to`).

    Padding's labels are -100 by position, so a pad token that is also the end token hides no end.
    """
    width = max(len(f["input_ids"]) for f in features)
    width = max(width, pad_to or 0)
    batch: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": [], "labels": []}
    for feature in features:
        ids, missing = feature["input_ids"], width - len(feature["input_ids"])
        batch["input_ids"].append(ids + [pad_id] * missing)
        batch["attention_mask"].append([1] * len(ids) + [0] * missing)
        batch["labels"].append(feature["labels"] + [IGNORED] * missing)
    return batch
