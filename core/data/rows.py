"""Records to examples: which column is which, in every common shape; bad values named with their row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from llmtui.core.data.parsing import Record, Written
from llmtui.core.errors import DataError

if TYPE_CHECKING:
    from llmtui.core.data.labels import Labels

_INSTRUCTION: Final = ("instruction", "prompt", "question", "query")
_INPUT: Final = ("input", "context")
_OUTPUT: Final = ("output", "completion", "response", "answer")
_MESSAGES: Final = ("messages", "conversations")
_ROLES: Final = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "model": "assistant",
                 "system": "system", "chatgpt": "assistant", "bot": "assistant"}  # fmt: skip
CANONICAL: Final = ("instruction", "input", "output", "messages", "text")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: role is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Example:
    """One row to learn from: an instruction with its output, a conversation, or plain text."""

    place: str
    instruction: str = ""
    input: str = ""
    output: str = ""
    turns: tuple[Turn, ...] = ()
    text: str | None = None
    label: str | None = None


class Problems:
    """Bad values of one kind together: the first five with their places, and how many there are."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._hints: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, where: str, hint: str) -> None:
        """Note one; only the first five of a kind keep their place."""
        self._counts[kind] += 1
        self._hints.setdefault(kind, hint)
        places = self._found.setdefault(kind, [])
        if len(places) < 5:
            places.append(where)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def raise_if_any(self) -> None:
        """Raise a DataError that names the commonest kind first."""
        if not self._counts:
            return
        sentences = []
        for kind, count in self._counts.most_common():
            more = f" and {count - 5} more" if count > 5 else ""
            sentences.append(f"{kind} ({'; '.join(self._found[kind])}{more})")
        first = self._counts.most_common(1)[0][0]
        raise DataError("\n".join(sentences), hint=self._hints[first])


def column_of(names: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Canonical name → column name, for the columns there are.

    Raises:
        DataError: the mapping names a column that is not there, or no known shape fits.
    """
    present = list(names)
    for canonical, column in columns.items():
        if canonical not in (*CANONICAL, "prompt", "completion"):
            raise DataError(f'"{canonical}" is nothing a column can be', place="dataset.columns",
                            hint=f"map {', '.join(CANONICAL)}")  # fmt: skip
        if column not in present:
            raise DataError(f'there is no column "{column}"; columns found: {", ".join(present)}',
                            place="dataset.columns", hint="name one of them")  # fmt: skip
    aliases = {"prompt": "instruction", "completion": "output"}
    found = {aliases.get(canonical, canonical): column for canonical, column in columns.items()}
    for canonical, spellings in (("instruction", _INSTRUCTION), ("input", _INPUT), ("output", _OUTPUT),
                                 ("messages", _MESSAGES), ("text", ("text",))):  # fmt: skip
        if canonical not in found:
            match = next((s for s in spellings if s in present and s not in found.values()), None)
            if match:
                found[canonical] = match
    if "messages" in found or ("instruction" in found and "output" in found) or "text" in found:
        return found
    looks = _delimiter_hint(present)
    raise DataError(
        f"columns found: {', '.join(present) or 'none'}; expected instruction and output (input optional), "
        "or prompt and completion, or messages, or text",
        place="dataset.name_or_path", hint=looks or "map them with dataset.columns: {instruction: …, output: …}",
    )  # fmt: skip


def _delimiter_hint(names: Sequence[str]) -> str:
    if len(names) == 1:
        for sign, word in ((";", "';'"), ("\t", "a tab"), ("|", "'|'")):
            if sign in names[0]:
                return f"the file looks separated by {word}"
    return ""


_LOOKED_AT: Final = 1000  # records whose columns are looked at before the first row is read


class RowReader:
    """Reads a stream of records as examples; what is wrong with rows is collected and told at the end.

    Args:
        columns: `dataset.columns`.
        labels: makes a label column the answers.
    """

    def __init__(self, columns: Mapping[str, str], labels: Labels | None = None) -> None:
        self._columns = columns
        self._labels = labels
        self.problems = Problems()
        self.dropped: Counter[str] = Counter()
        self.rows = 0

    def read(self, records: Iterable[Record]) -> Iterator[Example | None]:
        """An example for every record, None where it is dropped (counted by reason) or wrong.

        Raises:
            DataError: there is no such column, or no known shape fits.
        """
        stream = iter(records)
        first = list(islice(stream, _LOOKED_AT))
        if not first:
            return
        names: dict[str, None] = {}
        for record in first:
            names.update(dict.fromkeys(record.fields))
        labels = self._labels
        found = labels.found(names, self._columns) if labels is not None else column_of(names, self._columns)
        for record in chain(first, stream):
            self.rows += 1
            named = labels.named(record, self.problems) if labels is not None else record
            example = _example(named, found, self.problems)
            if isinstance(example, str):
                self.dropped[example] += 1
                yield None
            else:
                yield labels.marked(example) if labels is not None else example

    def finish(self) -> None:
        """Raise a DataError about all rows that are wrong."""
        self.problems.raise_if_any()


def to_examples(
    records: Sequence[Record], columns: Mapping[str, str], labels: Labels | None = None
) -> tuple[list[Example | None], dict[str, int]]:
    """Examples in the order of the records; None where a row is dropped, counted by reason.

    Raises:
        DataError: values that are no text, unknown roles: all of a kind together.
    """
    reader = RowReader(columns, labels)
    examples = list(reader.read(records))
    reader.finish()
    return examples, dict(reader.dropped)


def _example(record: Record, found: Mapping[str, str], problems: Problems) -> Example | str:
    """The example, or the reason why the row is dropped."""
    fields = record.fields
    said = _conversation(fields, found)
    if said is not None:
        turns = _turns(record, said, problems)
        if turns is not None and not any(t.role == "assistant" and t.content for t in turns):
            return "no answer"
        return Example(record.place, turns=tuple(turns or ()))
    if "instruction" in found and "output" in found:
        output = _text(record, found["output"], problems)
        instruction = _text(record, found["instruction"], problems)
        extra = _text(record, found["input"], problems) if "input" in found else ""
        if not output:
            return "no output"
        if not instruction and not extra:
            return "no instruction"
        return Example(record.place, instruction=instruction, input=extra, output=output)
    if "text" in found:
        text = _text(record, found["text"], problems)
        return Example(record.place, text=text) if text else "no text"
    return "no messages"


def _conversation(fields: Mapping[str, Any], found: Mapping[str, str]) -> Any:
    """A row's messages; one file may hold both spellings of the column."""
    if "messages" not in found:
        return None
    mapped = fields.get(found["messages"])
    return mapped if mapped is not None else next((fields[s] for s in _MESSAGES if fields.get(s) is not None), None)


def _text(record: Record, column: str, problems: Problems) -> str:
    value = record.fields.get(column)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    kind = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
    problems.add(f'"{column}" is {kind}, not text', record.place, "write it as text, or map another column")
    return "?"


def _turns(record: Record, value: Any, problems: Problems) -> list[Turn] | None:
    if not isinstance(value, list):
        problems.add("messages is not a list", record.place, 'write [{"role": …, "content": …}]')
        return None
    turns: list[Turn] = []
    for number, item in enumerate(value, 1):
        where = f"{record.place}, turn {number}"
        if not isinstance(item, dict):
            problems.add("a turn is no object", where, 'write {"role": …, "content": …}')
            return None
        role = item.get("role", item.get("from"))
        content = item.get("content", item.get("value"))
        if str(role) not in _ROLES:
            problems.add(f"role {role!r} is unknown", where, "use system, user and assistant (or human and gpt)")
            return None
        if not isinstance(content, str) or isinstance(content, Written):
            problems.add("a turn has no text", where, "write its content as text, or remove the row")
            return None
        turns.append(Turn(_ROLES[str(role)], content))
    return _checked(record, turns, problems)


def _checked(record: Record, turns: list[Turn], problems: Problems) -> list[Turn] | None:
    """Roles must alternate, user first, a system message only at the start."""
    expected = "user"
    for number, turn in enumerate(turns, 1):
        where = f"{record.place}, turn {number}"
        if turn.role == "system":
            if number != 1:
                problems.add("a system message stands after the first turn", where, "put it first")
                return None
            continue
        if turn.role != expected:
            problems.add(f"the {turn.role} speaks where the {expected} should", where,
                         "user and assistant must take turns, the user first")  # fmt: skip
            return None
        expected = "assistant" if expected == "user" else "user"
    return turns
