"""What can be done to a run from the Runs and the Run place: the same keys, the same words."""

from __future__ import annotations

from collections.abc import Callable

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.state import RESUMABLE_STATES, RunState
from llmtui.tui.actions import StopHow
from llmtui.tui.screens.place import Place


def is_orphan(state: RunState) -> bool:
    """Whether the worker lives without its supervisor."""
    return state.liveness.worker and not state.liveness.supervisor


class RunActions(Place, inherit_bindings=False):
    """A place with a run under its hand."""

    def chosen_run(self) -> tuple[RunDirectory, RunState | None] | None:
        """The run that keys are about, with its state if it can be read."""
        return None

    def useless_actions(self) -> frozenset[str]:
        chosen = self.chosen_run()
        if chosen is None:
            return frozenset({"stop_menu", "resume", "checkpoint", "export", "delete", "open_run"})
        state = chosen[1]
        if state is None:
            return frozenset({"stop_menu", "resume", "checkpoint", "export"})
        if state.alive or not state.final:
            return frozenset({"resume", "delete"})
        useless = {"stop_menu", "checkpoint"}
        if state.state not in RESUMABLE_STATES:
            useless.add("resume")
        return frozenset(useless)

    # --- actions

    def action_checkpoint(self) -> None:
        chosen = self._living("take a checkpoint of")
        if chosen is not None:
            directory, state = chosen
            self._do(
                lambda: self.llmtui.actions.checkpoint(directory),
                f"checkpoint asked of {state.info.name}: saved at the next step's end",
            )

    def action_stop_menu(self) -> None:
        from llmtui.tui.screens.stop_menu import StopMenu

        chosen = self._living("stop")
        if chosen is None:
            return
        directory, state = chosen

        def stop(how: StopHow | None) -> None:
            if how is None:
                return
            said = {
                "checkpoint": "stop asked: after this step, with a checkpoint",
                "now": "stop asked: now, without a checkpoint",
                "kill": "kill asked",
            }[how]
            self._do(lambda: self.llmtui.actions.stop(directory, how), f"{state.info.name}: {said}")

        self.app.push_screen(StopMenu(state), stop)

    def action_resume(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        directory, state = chosen
        if state is not None and state.alive:
            self.say(f"{state.info.name} is running: nothing to resume", "warn")
            return
        if state is not None and state.state == "finished":
            self.say(f"{state.info.name} has finished: nothing to resume", "warn")
            return
        name = state.info.name if state is not None else directory.id
        self._do(lambda: self.llmtui.actions.resume(directory), f"{name} goes on from its last good checkpoint")

    def action_export(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        directory = chosen[0]

        def export() -> str:
            path = self.llmtui.actions.export(directory)
            return f"written: {path}"

        self._do(export, "")

    def action_delete(self) -> None:
        from llmtui.tui.screens.type_name import TypeName

        chosen = self._chosen()
        if chosen is None:
            return
        directory, state = chosen
        if state is not None and (state.alive or not state.final):
            self.say("a live run is not deleted: stop it first (S)", "warn")
            return
        name = state.info.name if state is not None else directory.id

        def delete(agreed: bool | None) -> None:
            if agreed:
                self._do(lambda: self.llmtui.actions.delete_run(directory), f"{name} is deleted")
                self.run_deleted(directory)

        lines = (f"Run {directory.id}", "with its checkpoints, result, log and summary.")
        self.app.push_screen(TypeName("Delete this run?", lines, name), delete)

    def run_deleted(self, directory: RunDirectory) -> None:
        """A run is being deleted."""

    # --- how they are done

    def _chosen(self) -> tuple[RunDirectory, RunState | None] | None:
        chosen = self.chosen_run()
        if chosen is None:
            self.say("no run here", "warn")
        return chosen

    def _living(self, verb: str) -> tuple[RunDirectory, RunState] | None:
        chosen = self._chosen()
        if chosen is None:
            return None
        directory, state = chosen
        if state is None or (state.final and not state.alive):
            self.say(f"it has ended: nothing to {verb.removesuffix(' of')}", "warn")
            return None
        return directory, state

    def _do(self, act: Callable[[], object], said: str) -> None:
        """Do it away from the screen's thread; say how it went, or why it did not."""

        def work() -> None:
            try:
                answer = act()
            except Exception as error:  # shown; nothing that a key starts takes the screen down
                self.app.call_from_thread(self.llmtui.show_error, error)
                return
            text = answer if isinstance(answer, str) and answer else said
            self.app.call_from_thread(self.say, text, "good", 8.0)
            self.llmtui.reading.look_now()

        self.run_worker(work, thread=True, exit_on_error=False)
