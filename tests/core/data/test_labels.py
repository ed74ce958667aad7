"""Labels: a column of ids or texts becomes the answer; what is no label is named with its row."""

from __future__ import annotations

from typing import Any

import pytest

from llmtui.core.data.labels import Labels
from llmtui.core.data.records import Record, Written
from llmtui.core.data.rows import Example, Problems
from llmtui.core.errors import DataError
from llmtui.core.preset.schema import LabelSection


def named(values: list[Any], names: Any = None) -> list[str]:
    labels = Labels(LabelSection(column="label", names=names or {}))
    problems = Problems()
    records = [labels.named(Record(f"a.csv:{n}", {"text": "t", "label": v}), problems) for n, v in enumerate(values, 2)]
    problems.raise_if_any()
    return [record.fields["label"] for record in records]


@pytest.mark.parametrize("names", [["neg", "pos"], {0: "neg", 1: "pos"}, {"0": "neg", "1": "pos"}])
def test_ids_and_names_are_labels(names: Any) -> None:
    values = ["0", Written("1"), Written("1.0"), "pos", " neg ", "1"]
    assert named(values, names) == ["neg", "pos", "pos", "pos", "neg", "pos"]


def test_words_and_booleans_have_names_too() -> None:
    assert named(["p", "n"], {"p": "positive", "n": "negative"}) == ["positive", "negative"]
    assert named([True, False], {True: "yes", False: "no"}) == ["yes", "no"]


def test_without_names_the_column_holds_them() -> None:
    labels = Labels(LabelSection(column="label"))
    problems = Problems()
    for value in ("spam", "ham", "spam", Written("3")):
        labels.named(Record("p", {"label": value}), problems)
    problems.raise_if_any()
    assert labels.names == ("spam", "ham", "3")


def test_what_is_no_label_is_an_error_with_its_rows() -> None:
    with pytest.raises(DataError) as caught:
        named(["2", "0", "", None, Written("NaN"), "3", "4", "5", "6", "7", ["x"]], ["neg", "pos"])
    unknown, missing, shape = caught.value.message.split("\n")
    assert unknown.startswith("\"label\" has a label that dataset.label.names does not know (a.csv:2: '2'; a.csv:7")
    assert unknown.endswith("and 1 more)")
    assert missing == '"label" has no label (a.csv:4; a.csv:5; a.csv:6)'
    assert "a.csv:12" in shape
    assert "0: neg, 1: pos" in (caught.value.hint or "")


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(DataError) as caught:
        named(["positve"], {"n": "negative", "p": "positive"})
    assert (caught.value.hint or "").startswith("did you mean positive?")


@pytest.mark.parametrize(
    ("present", "columns", "wanted"),
    [
        (["text", "label"], {}, {"instruction": "text", "output": "label"}),
        (["sentence", "label"], {}, {"instruction": "sentence", "output": "label"}),
        (["instruction", "input", "label"], {}, {"output": "label"}),
        (["prompt", "output", "label"], {}, {"output": "label"}),
        (["body", "label"], {"text": "body"}, {"instruction": "body", "output": "label"}),
        (["body", "label"], {"input": "body", "output": "x"}, {"instruction": "body", "output": "label"}),
        (["ask", "body", "label"], {"instruction": "ask", "input": "body"},
         {"instruction": "ask", "input": "body", "output": "label"}),
    ],
)  # fmt: skip
def test_a_text_column_asks_and_the_label_answers(
    present: list[str], columns: dict[str, str], wanted: dict[str, str]
) -> None:
    assert Labels(LabelSection(column="label")).columns(present, columns) == wanted


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(DataError, match='no column "kind"; columns found: text, label'):
        Labels(LabelSection(column="kind")).columns(["text", "label"], {})


def test_the_answer_is_kept_as_the_label() -> None:
    marked = Labels(LabelSection(column="label")).marked(Example("p", instruction="t", output="pos"))
    assert marked == Example("p", instruction="t", label="pos")


def test_a_hub_set_brings_its_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    from llmtui.core.data.hub import hub_records

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    table = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: table)
    records = list(hub_records("who/films", None, "train"))
    assert [str(record.fields["label"]) for record in records] == ["1", "0", "-1"], "as they stand there"
    for names, wanted in (({}, ["pos", "neg"]), ({"0": "bad", "1": "good"}, ["good", "bad"])):
        labels, problems = Labels(LabelSection(column="label", names=names)), Problems()
        assert [labels.named(record, problems).fields["label"] for record in records[:2]] == wanted
        labels.named(records[2], problems)
        with pytest.raises(DataError, match="who/films, row 3"):
            problems.raise_if_any()
