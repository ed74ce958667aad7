"""The editor's forecast: made in a thread, a moment after the last change; only the newest counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.message import Message
from textual.timer import Timer

from llmtui.core.preset import LoadedPreset, Preset
from llmtui.tui.preset_facts import forecast_facts
from llmtui.tui.screens.editor_keeping import EditorKeeping
from llmtui.tui.widgets.editor_effects import Known
from llmtui.tui.widgets.facts_pane import Fact

if TYPE_CHECKING:
    from llmtui.core.forecast import Forecast

_PAUSE: Final = 0.25  # seconds


class EditorForecast(EditorKeeping, inherit_bindings=False):
    """Keeps the forecast of the preset that was last asked about."""

    _made: Forecast | None = None
    _made_of: Preset | None = None
    _problem = ""
    _wanted: LoadedPreset | None = None
    _forecast_timer: Timer | None = None

    class Made(Message):
        """A forecast, or why there is none."""

        def __init__(self, loaded: LoadedPreset, forecast: Forecast | None, problem: str) -> None:
            super().__init__()
            self.loaded = loaded
            self.forecast = forecast
            self.problem = problem

    def show_notes(self) -> None:
        """Bring help and summary up to date."""
        raise NotImplementedError

    def forecast_soon(self, loaded: LoadedPreset | None) -> None:
        """Have the forecast made anew, if the preset is another one; None (it has problems) has none."""
        self._wanted = loaded
        if loaded is None or loaded.preset == self._made_of:
            return
        if self._forecast_timer is not None:
            self._forecast_timer.stop()
        self._forecast_timer = self.set_timer(_PAUSE, self._make)

    def _make(self) -> None:
        loaded = self._wanted
        if loaded is None:
            return

        def work() -> None:
            from llmtui.core.forecast import forecast

            try:
                made, problem = forecast(loaded.preset, loaded.folder), ""
            except Exception as error:  # a file of the user's that the arithmetic trips over must not end the editor
                made, problem = None, f"{type(error).__name__}: {error}"
            self.post_message(self.Made(loaded, made, problem))

        self.run_worker(work, thread=True, group="forecast", exclusive=True, exit_on_error=False)

    def on_editor_forecast_made(self, event: Made) -> None:
        """Show it, unless something newer is wanted."""
        if self._wanted is None or event.loaded.preset != self._wanted.preset:
            return
        self._made, self._made_of, self._problem = event.forecast, event.loaded.preset, event.problem
        self.show_notes()

    def known(self, preset: Preset | None) -> Known:
        """What the forecast of this very preset knows; nothing while it is being made."""
        if preset is None:
            return Known()
        ranks = preset.gpu_split.processes
        if ranks is None and preset.gpu_split.strategy in ("single", "layers"):
            ranks = 1
        if self._made is None or preset != self._made_of:
            return Known(ranks=ranks)
        return Known(self._made.rows, self._made.total_steps, ranks)

    def forecast_shown(self, preset: Preset | None) -> list[Fact]:
        """The facts of the last forecast; while another is made, they are marked as those of before."""
        if preset is None:
            return []
        if self._problem and preset == self._made_of:
            return [Fact("forecast", f"– {self._problem}", "warn")]
        if self._made is None:
            return [Fact("forecast", "–", "faint")]
        facts = [fact for fact in forecast_facts(self._made) if fact.name != "of it" or self.has_class("-wide")]
        return (
            facts
            if preset == self._made_of
            else [Fact("forecast", "of the values before; the new one comes", "faint"), *facts]
        )
