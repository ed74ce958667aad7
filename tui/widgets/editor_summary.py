"""What the whole preset comes to: what is wrong, or what it will do and need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llmtui.tui.preset_facts import facts_of, problem_facts
from llmtui.tui.widgets.editor_document import Checked
from llmtui.tui.widgets.facts_pane import Fact, FactsPane
from llmtui.tui.widgets.pane import Drawing, Line

# The form itself shows these.
_SHOWN_BY_THE_FORM: Final = frozenset({"", "model", "data", "task"})


class SummaryPane(FactsPane):
    """Facts under a title; the cursor stays in the form."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.can_focus = False
        self.right: Line = ()

    def show_checked(self, checked: Checked, forecast: Sequence[Fact]) -> None:
        """Bring it up to date."""
        count = len(checked.problems)
        self.heading = (("Problems" if count else "What it comes to", "title"),)
        glyphs = Drawing.glyphs
        self.right = (
            ((f"{glyphs.bad_point} {count}", "bad"),) if count else ((f"{glyphs.states['finished']} valid", "good"),)
        )
        if checked.later and not count:
            self.right = ((f"! {len(checked.later)} not yet", "warn"),)
        self.show_facts(summary_facts(checked, forecast), from_top=True)

    def title(self) -> tuple[Line, Line]:
        return self.heading, self.right


def summary_facts(checked: Checked, forecast: Sequence[Fact]) -> list[Fact]:
    """Problems alone; else what cannot be run yet, the forecast, and what the run will do."""
    if checked.loaded is None:
        return problem_facts(checked.problems)
    later = [Fact("not yet", f"{problem.field}: {problem.value}; {problem.cure}", "warn") for problem in checked.later]
    facts = [fact for fact in facts_of(checked.loaded) if fact.name not in _SHOWN_BY_THE_FORM]
    notes = [fact for fact in facts if fact.name == "note"]
    return [*later, *notes, *forecast, *(fact for fact in facts if fact.name != "note")]
