"""Tiny models and data shared by the worker's tests; made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.worker.small import make_data, make_model


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """One thread: tiny matrices are no faster with two, and a process that has used only one may fork."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers."""
    return make_model(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture(scope="session")
def neox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-NeoX of two layers, as OpenCALM and rinna are."""
    return make_model(tmp_path_factory.mktemp("neox"), "neox")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 instruction rows of ragged lengths."""
    return make_data(tmp_path_factory.mktemp("data") / "rows.jsonl")
