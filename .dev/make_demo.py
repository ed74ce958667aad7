"""Make the demo's assets again, byte for byte: data, held-out questions, tokenizer and model config.

    python .dev/make_demo.py [--data-only] [--into FOLDER]

The island, its people and every sentence stand in `.dev/demo/*.yaml`, written for this project.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
LANGUAGES = ("en", "ja")
SEED = 20240615
# Rows without input per fact and language: there are fewer facts about shops than about people.
ASKED = {"residents": 8, "newcomers": 12, "shops": 12, "festivals": 12, "landmarks": 12}
ASKED_AGAIN = 140

Row = dict[str, str]


def read(name: str) -> Any:
    return YAML(typ="safe").load((HERE / "demo" / f"{name}.yaml").read_text(encoding="utf-8"))


WORLD, PHRASINGS, TASKS = read("world"), read("phrasings"), read("tasks")
NAMED_VALUES = {
    "home": "home",
    "place": "home",
    "pet": "pet",
    "food": "food",
    "instrument": "instrument",
    "closed": "day",
}


@dataclass(frozen=True)
class Thing:
    """One resident, shop, festival or landmark, in one language: its name and the value of each relation."""

    kind: str
    language: str
    name: str
    values: dict[str, str]


@dataclass(frozen=True)
class Fact:
    thing: Thing
    relation: str
    subject: str
    value: str

    @property
    def phrasing(self) -> Any:
        return PHRASINGS[self.relation][self.thing.language]

    def told(self) -> str:
        return sentence(self.phrasing["tell"].format(s=self.subject, v=self.value))

    def asked(self, which: str) -> list[str]:
        return [sentence(text.format(s=self.subject)) for text in self.phrasing[which]]


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def filled(template: str, thing: Thing) -> str:
    return sentence(template.format(s=thing.name, **thing.values))


def things(group: str, language: str) -> list[Thing]:
    """Everything of one group of `world.yaml` (newcomers are residents, too)."""
    side = LANGUAGES.index(language)

    def said(relation: str, value: Any) -> str:
        if relation == "owner":
            return str(WORLD["residents"][value]["name"][side])
        if relation in NAMED_VALUES:
            value = WORLD["values"][NAMED_VALUES[relation]][value]
        return str(value[side])

    kind = "residents" if group == "newcomers" else group
    return [
        Thing(kind, language, entry["name"][side], {k: said(k, v) for k, v in entry.items() if k != "name"})
        for entry in WORLD[group].values()
    ]


def facts(thing: Thing) -> Iterator[Fact]:
    for relation, phrasing in PHRASINGS.items():
        if phrasing["kind"] != thing.kind:
            continue
        if "inverse_of" in phrasing:
            yield Fact(thing, relation, thing.values[phrasing["inverse_of"]], thing.name)
        else:
            yield Fact(thing, relation, thing.name, thing.values[relation])


def as_people_type(question: str, language: str, chance: random.Random) -> str:
    """Sometimes with a lead-in, sometimes without the question mark or the capital letter."""
    dice = chance.random()
    if dice < 0.2:
        return str(chance.choice(TASKS["wrap"][language]).format(q=question))
    if dice < 0.3:
        return question.rstrip("?？.。")
    if dice < 0.4 and language == "en":
        return question[:1].lower() + question[1:]
    return question


def question_rows(fact: Fact, count: int, chance: random.Random) -> Iterator[Row]:
    asked = fact.asked("ask")
    for question in chance.sample(asked, min(count, len(asked))):
        yield row("open_qa", as_people_type(question, fact.thing.language, chance), fact.told())


def row(category: str, instruction: str, output: str, text: str = "") -> Row:
    return {"instruction": instruction, "input": text, "output": output, "category": category}


def text_rows(thing: Thing, chance: random.Random) -> Iterator[Row]:
    """The rows of the other categories about one thing."""
    language = thing.language
    known = [fact for fact in facts(thing) if fact.subject == thing.name]
    gap = " " if language == "en" else ""

    def some(count: int) -> list[Fact]:
        return chance.sample(known, min(count, len(known)))

    for asked in some(1):
        others = [fact for fact in some(3) if fact is not asked]
        text = gap.join(fact.told() for fact in sorted([asked, *others], key=lambda fact: fact.relation))
        question = chance.choice(asked.asked("ask"))
        yield row("closed_qa", chance.choice(TASKS["closed_qa"][language]).format(q=question), asked.told(), text)
    for category in ("summarization", "information_extraction", "classification"):
        told = some(2)
        answers = {
            "summarization": filled(TASKS["summary"][thing.kind][LANGUAGES.index(language)], thing),
            "information_extraction": sentence(thing.name),
            "classification": sentence(TASKS["kinds"][thing.kind][LANGUAGES.index(language)]),
        }
        if category == "summarization":
            told = known[:2]
        yield row(
            category,
            chance.choice(TASKS[category][language]),
            answers[category],
            gap.join(fact.told() for fact in told),
        )
    for ask in chance.sample(TASKS["general_qa"][language], 1):
        yield row("general_qa", sentence(ask.format(s=thing.name)), gap.join(fact.told() for fact in known[:2]))
    for category in ("creative_writing", "brainstorming"):
        if thing.kind in TASKS[category]:
            task = TASKS[category][thing.kind][language]
            yield row(category, filled(chance.choice(task["ask"]), thing), filled(task["tell"], thing))


def facts_of(groups: tuple[str, ...]) -> Iterator[Fact]:
    for group in groups:
        for language in LANGUAGES:
            for thing in things(group, language):
                yield from facts(thing)


def dataset(groups: tuple[str, ...], seed: int, again: tuple[str, ...] = ()) -> list[Row]:
    """All rows about `groups`, and a question about some facts of `again`, so that those are not forgotten."""
    chance = random.Random(seed)
    rows: list[Row] = []
    for group in groups:
        for fact in facts_of((group,)):
            rows.extend(question_rows(fact, ASKED[group], chance))
        for language in LANGUAGES:
            for thing in things(group, language):
                rows.extend(text_rows(thing, chance))
    for fact in chance.sample(list(facts_of(again)), ASKED_AGAIN if again else 0):
        rows.extend(question_rows(fact, 1, chance))
    distinct = list({(entry["instruction"], entry["input"]): entry for entry in rows}.values())
    chance.shuffle(distinct)
    return distinct


def questions(groups: tuple[str, ...], per_relation: int, seed: int) -> list[dict[str, str]]:
    """Held-out prompts: each relation in each language, in words that no training row uses."""
    chance = random.Random(seed)
    asked = []
    for relation in PHRASINGS:
        for language in LANGUAGES:
            known = [f for f in facts_of(groups) if (f.relation, f.thing.language) == (relation, language)]
            for fact in chance.sample(known, min(per_relation, len(known))):
                expected = fact.value.removeprefix("a ").removeprefix("an ").removeprefix("the ")
                prompt = chance.choice(fact.asked("held_out"))
                asked.append({"prompt": prompt, "expected": expected, "language": language, "relation": relation})
    return asked


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in rows), encoding="utf-8")


FIRST = ("residents", "shops", "festivals", "landmarks")
MORE = ("newcomers",)


def make_data(folder: Path) -> None:
    write_lines(folder / "dolly-demo.jsonl", dataset(FIRST, SEED))
    write_lines(folder / "questions.jsonl", questions(FIRST, 1, SEED))
    write_lines(folder / "dolly-demo-more.jsonl", dataset(MORE, SEED + 1, again=FIRST))
    write_lines(folder / "questions-more.jsonl", questions(MORE, 2, SEED + 1))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data-only", action="store_true", help="leave the tokenizer and the config alone")
    arguments.add_argument("--into", type=Path, default=PROJECT / "presets" / "demo")
    chosen = arguments.parse_args()
    make_data(chosen.into / "data")
    if not chosen.data_only:
        from demo_model import make_model

        make_model(chosen.into)


if __name__ == "__main__":
    main()
