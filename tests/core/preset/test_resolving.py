"""A run's preset is written out whole and reads back as the same preset."""

from __future__ import annotations

from pathlib import Path

from llmtui.core.preset import parse_preset, resolve


def test_several_sources_are_written_out_and_read_back(tmp_path: Path) -> None:
    text = (
        "model: {name_or_path: a/model}\n"
        "dataset: {sources: [{name_or_path: a/rows, split: test, columns: {output: 答え}}, {name_or_path: a/more, limit: 3}]}\n"
    )
    loaded = parse_preset(text, tmp_path / "my.yaml")
    assert parse_preset(resolve(loaded), tmp_path / "again.yaml").preset == loaded.preset
