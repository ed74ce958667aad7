"""Tokenizers that are only a sentencepiece model give the ids that the model gives (B5, B6)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.data.sentencepiece_models import check_packages, faithful, sentencepiece_file
from llmtui.core.data.tokens import special_tokens
from llmtui.core.errors import MachineError
from tests.core.data.conftest import sentencepiece_folder

# sentencepiece writes blanks as U+2581; "\r\n" is one grapheme to tokenizers' normaliser and two characters to it.
_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cn", "Co", "Mn", "Me", "Mc", "Lm"], exclude_characters="<\0\r\u2581",
                  include_characters="\n\t 　日本ＡＢ①ｱ😀"), max_size=30,
)  # fmt: skip


@pytest.fixture(scope="module", params=["rinna-3.6b", "older rinna", "identity with a blank before"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings: dict[str, dict[str, Any]] = {
        "rinna-3.6b": {"normalization_rule_name": "nmt_nfkc"},
        "older rinna": {"normalization_rule_name": "nmt_nfkc", "byte_fallback": False, "add_dummy_prefix": True,
                        "remove_extra_whitespaces": True},
        "identity with a blank before": {"add_dummy_prefix": True},
    }  # fmt: skip
    return sentencepiece_folder(tmp_path_factory.mktemp("sp"), **settings[request.param])


def loaded(folder: Path) -> tuple[Any, Any]:
    from sentencepiece import SentencePieceProcessor
    from transformers import AutoTokenizer

    model = SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    return faithful(AutoTokenizer.from_pretrained(folder), folder), model


def test_every_text_has_the_models_own_ids(folder: Path) -> None:
    tokenizer, model = loaded(folder)

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(st.lists(st.one_of(_TEXT, st.just("<NL>"), st.just("### 回答:")), max_size=4).map("".join))
    def same(text: str) -> None:
        ids, expected = tokenizer(text, add_special_tokens=False)["input_ids"], model.encode(text)
        if ids != expected:  # "###" is "#", "##" or "##", "#": of two equally likely readings either is right
            assert sum(map(model.get_score, ids)) == pytest.approx(sum(map(model.get_score, expected)), abs=1e-3)
            assert model.decode(ids) == model.decode(expected)
        if model.unk_id() not in expected:
            assert tokenizer.decode(expected).strip() == model.decode(expected).strip()

    same()


def test_an_unknown_character_is_never_the_end_token(folder: Path) -> None:
    """transformers 5.24 reads id 2 as unknown in every T5Tokenizer; here that is `</s>`."""
    tokenizer, _ = loaded(folder)
    assert tokenizer.eos_token_id not in tokenizer("龘 𠮷 ☃", add_special_tokens=False)["input_ids"]


def test_what_is_saved_reads_back_the_same(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer, model = loaded(folder)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "### 指示:<NL>日本語  の 質問😀"
    assert again(text, add_special_tokens=False)["input_ids"] == model.encode(text)
    assert special_tokens(again) == special_tokens(tokenizer)
    assert again("a")["input_ids"] == tokenizer("a")["input_ids"]
    assert (again.eos_token, again.pad_token, again.unk_token) == ("</s>", "<pad>", "<unk>")


@pytest.mark.parametrize(("module", "package"), [("sentencepiece", "sentencepiece"), ("google", "protobuf")])
def test_a_missing_package_is_named_with_the_file_it_is_for(
    module: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spiece.model").write_bytes(b"")
    check_packages(tmp_path)
    for name in [n for n in sys.modules if n.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)

    class Missing:
        """An import system in which the package is not."""

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name.split(".")[0] == module:
                raise ModuleNotFoundError(name)

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(MachineError, match=rf"spiece\.model is read with the package {package}") as refused:
        check_packages(tmp_path)
    assert refused.value.hint == f"pip install {package}"
    (tmp_path / "tokenizer.json").write_text("{}")
    check_packages(tmp_path)


def test_other_tokenizers_are_left_as_they_are(bpe: Any, tmp_path: Path) -> None:
    assert faithful(bpe, tmp_path) is bpe
    assert faithful(bpe, tmp_path / "hub" / "name") is bpe
    assert sentencepiece_file(tmp_path) is None
    folder = sentencepiece_folder(tmp_path, normalization_rule_name="nmt_nfkc", model_type="bpe")
    assert faithful(bpe, folder) is bpe, "its ids are not the model's"
