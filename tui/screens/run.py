"""The Run place: one run whole, live."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.geometry import Offset, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.state import RunState
from llmtui.tui import keys
from llmtui.tui.charts.drawing import ChartData
from llmtui.tui.charts.series import SMOOTHINGS
from llmtui.tui.messages import RunChanged, RunUnreadable
from llmtui.tui.screens.run_actions import RunActions, is_orphan
from llmtui.tui.screens.run_layout import LOWER, PANES, arrange, is_wide
from llmtui.tui.widgets.chart_pane import ChartPane
from llmtui.tui.widgets.hardware_pane import HardwarePane
from llmtui.tui.widgets.pane import Pane
from llmtui.tui.widgets.run_details import CheckpointsPane, LogPane, SamplesPane, Tabs, WarningsPane
from llmtui.tui.widgets.run_head import RunHead


class RunLayout(Layout):
    """Textual's side of `run_layout.arrange`."""

    name = "run"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        assert isinstance(parent, RunBody)
        regions = arrange(size.width, size.height, gpus=parent.gpus, lower=parent.lower, full=parent.full)
        return [
            WidgetPlacement(regions[child.id], Offset(0, 0), Spacing(), child)
            for child in children
            if child.id in regions and regions[child.id].area
        ]


class RunBody(Widget):
    """Holds the panes and places them."""

    DEFAULT_CSS = "RunBody { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__(id="body")
        self.gpus = 0
        self.lower = LOWER[0]
        self.full: str | None = None
        self._run_layout = RunLayout()

    @property
    def layout(self) -> Layout:
        return self._run_layout

    def rearrange(self) -> None:
        """Place the panes anew. (A child has to ask: Textual drops only the arrangements of those above it.)"""
        self.query_one(RunHead).refresh(layout=True)

    def compose(self) -> Iterable[Widget]:
        yield RunHead(id="head")
        yield ChartPane(id="chart")
        yield HardwarePane(id="hardware")
        yield LogPane(id="log")
        yield SamplesPane(id="samples")
        yield CheckpointsPane(id="checkpoints")
        yield WarningsPane(id="warnings")


class RunPlace(RunActions, inherit_bindings=False):
    """Shows the run that `watch` names."""

    PLACE = "run"
    BINDINGS = keys.bindings("run")

    def __init__(self) -> None:
        super().__init__()
        self._directory: RunDirectory | None = None
        self._message: RunChanged | None = None
        self._answered: str | None = None

    def body(self) -> Iterable[Widget]:
        yield RunBody()

    def on_mount(self) -> None:
        self.set_focus(self.query_one(ChartPane))
        self.show_keys()

    # --- what it shows

    def on_screen_resume(self) -> None:
        wanted = self.llmtui.run_to_show()
        if wanted is None:
            self._show_nothing("no run yet: 1 goes to the presets, r there starts one")
            return
        if wanted != self._directory:
            self._directory, self._message, self._answered = wanted, None, None
            self._show_nothing("")
        self.llmtui.reading.watch(wanted, self.post_message)

    def on_screen_suspend(self) -> None:
        if self.app.current_mode != self.PLACE:
            self.llmtui.reading.unwatch()

    def on_run_changed(self, message: RunChanged) -> None:
        if self._directory is not None and message.run_id == self._directory.id:
            self._message = message
            self._show()
            if message.read_all:
                self._tell_answers(message.state)
            if is_orphan(message.state):
                self.llmtui.adopt()

    def on_run_unreadable(self, message: RunUnreadable) -> None:
        if self._directory is not None and message.run_id == self._directory.id:
            self._message = None
            self._show_nothing(message.text)

    def _show_nothing(self, problem: str) -> None:
        name = self._directory.id if self._directory is not None else ""
        self.query_one(RunHead).show(None, problem=problem, name=name)
        self.query_one(ChartPane).show(ChartData(), waiting="", read_all=True)
        self.show_keys()

    def _tell_answers(self, state: RunState) -> None:
        """What became of a request is said when it happens, not only listed."""
        answer = state.answers[-1] if state.answers else None
        name = answer.request_id if answer is not None else ""
        if answer is not None and self._answered not in (None, name):
            done = "done" if answer.accepted else "refused"
            text = f"{answer.request.replace('_', ' ')}: {answer.text or done}"
            self.say(text, "good" if answer.accepted else "warn", 8.0)
        self._answered = name

    def _show(self) -> None:
        message = self._message
        if message is None:
            return
        state = message.state
        self.query_one(RunHead).show(state, read_all=message.read_all)
        chart = self.query_one(ChartPane)
        chart.smoothing = message.series.smoothing
        chart.show(chart_data(message), waiting=_waiting(state), read_all=message.read_all)
        hardware = message.machine if message.machine is not None else state.hardware
        pane = self.query_one(HardwarePane)
        pane.show(hardware, remark="now" if message.machine is not None else "")
        self._place_panes(len(hardware.gpus) if hardware is not None else 0)
        tabs = self._tabs(state)
        self.query_one(LogPane).show_output(message.output, tabs("log"))
        self.query_one(SamplesPane).show_state(state, tabs("samples"))
        self.query_one(CheckpointsPane).show_state(state, tabs("checkpoints"))
        self.query_one(WarningsPane).show_state(state, tabs("warnings"))
        self.show_keys()

    def _tabs(self, state: RunState) -> Callable[[str], Tabs]:
        """For a lower pane: the names of all of them where they share a slot, nothing where they do not."""
        body = self.query_one(RunBody)
        if body.full is not None or is_wide(*body.size):
            return lambda pane: ()
        counts = {
            "log": "", "samples": str(len({sample.index for sample in state.samples}) or ""),
            "checkpoints": str(len(state.checkpoints) or ""), "warnings": str(len(state.warnings) or ""),
        }  # fmt: skip
        return lambda shown: [(name.capitalize(), counts[name], name == shown) for name in LOWER]

    def on_resize(self) -> None:
        self._show()

    # --- panes

    def _place_panes(self, gpus: int) -> None:
        body = self.query_one(RunBody)
        if gpus != body.gpus:
            body.gpus = gpus
            body.rearrange()

    def panes(self) -> list[Pane]:
        body = self.query_one(RunBody)
        return [self.query_one(f"#{name}", Pane) for name in ([body.full] if body.full else PANES)]

    def _step(self, by: int) -> None:
        """To the next pane; in the shared slot it becomes the one that is shown."""
        panes = self.panes()
        at = next((i for i, pane in enumerate(panes) if pane is self.focused), -1 if by > 0 else 0)
        pane = panes[(at + by) % len(panes)]
        body = self.query_one(RunBody)
        if pane.id in LOWER and pane.id != body.lower:
            body.lower = pane.id or LOWER[0]
            body.rearrange()
        self.set_focus(pane)
        self._show()

    def action_full_pane(self) -> None:
        body = self.query_one(RunBody)
        focused = self.focused
        if body.full is not None:
            body.full = None
        elif isinstance(focused, Pane) and focused.id:
            body.full = focused.id
        body.rearrange()
        self._show()

    def action_step_back(self) -> None:
        """Out of the full pane, off the crosshair, back to the runs."""
        chart = self.query_one(ChartPane)
        if self.query_one(RunBody).full is not None:
            self.action_full_pane()
        elif chart.view.crosshair is not None:
            chart.drop_crosshair()
        else:
            self.llmtui.action_go("runs")

    # --- the chart's keys

    def action_smoothing(self) -> None:
        chart = self.query_one(ChartPane)
        at = SMOOTHINGS.index(chart.smoothing) if chart.smoothing in SMOOTHINGS else 0
        chart.smoothing = SMOOTHINGS[(at + 1) % len(SMOOTHINGS)]
        chart.repaint()
        self.llmtui.reading.smooth(chart.smoothing)

    def action_log_scale(self) -> None:
        self.query_one(ChartPane).toggle_log()

    def action_crosshair(self, by: int) -> None:
        self.query_one(ChartPane).move_crosshair(by)

    def action_follow(self) -> None:
        log = self.query_one(LogPane)
        if self.focused is log:
            log.action_bottom()
        else:
            self.query_one(ChartPane).toggle_follow()

    def action_reset_chart(self) -> None:
        self.query_one(ChartPane).reset()

    # --- others

    def chosen_run(self) -> tuple[RunDirectory, RunState | None] | None:
        if self._directory is None:
            return None
        return self._directory, None if self._message is None else self._message.state

    def run_deleted(self, directory: RunDirectory) -> None:
        self.llmtui.forget_run(directory)
        self.llmtui.action_go("runs")

    def action_copy(self) -> None:
        focused = self.focused
        if self._directory is None:
            return
        if isinstance(focused, ChartPane):
            self.llmtui.copy(focused.crosshair_values() or self._directory.id)
        elif isinstance(focused, CheckpointsPane) and focused.copied():
            self.llmtui.copy(str(self._directory.path / focused.copied()))
        elif isinstance(focused, LogPane | SamplesPane | WarningsPane) and focused.copied():
            self.llmtui.copy(focused.copied())
        else:
            self.llmtui.copy(self._directory.id)


def chart_data(message: RunChanged) -> ChartData:
    """What the chart draws of a run."""
    state = message.state
    return ChartData(
        series=message.series,
        evals=tuple((e.step, e.loss) for e in state.evals),
        exact_match=state.evals[-1].exact_match if state.evals else None,
        bad=state.bad_steps,
        total_steps=state.total_steps,
        final=state.final,
    )


def _waiting(state: RunState) -> str:
    if state.final:
        return "it ended before its first step"
    return "the first step has not been made yet"
