"""Events fold into one state: the curve, the speeds, the time left, and the state's name."""

from __future__ import annotations

import math

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunInfo
from llmtui.core.runs.fold import Fold
from llmtui.core.runs.state import Liveness, RunState

BOTH, NOBODY = Liveness(True, True), Liveness(False, False)
INFO = RunInfo(id="20260101-000000-demo", name="demo", preset="demo", created=0.0)


def plan(attempt: int = 1, from_step: int = 0, total: int = 100) -> ev.Plan:
    return ev.Plan(
        attempt=attempt, from_step=from_step, total_steps=total, epochs=1, steps_per_epoch=total,
        per_device_train_batch_size=2, gradient_accumulation_steps=1, processes=1, effective_batch=2,
        warmup_steps=0, train_rows=200, val_rows=10, trainable_parameters=1, total_parameters=2,
        dtype="float32", attention="sdpa", m=0.0,
    )  # fmt: skip


class Story:
    """Events with a clock of their own."""

    def __init__(self) -> None:
        self.fold = Fold(INFO)
        self.m = 1000.0

    def tell(self, event: ev.EventBase, seconds: float = 0.0) -> None:
        self.m += seconds
        import msgspec

        self.fold.apply(msgspec.structs.replace(event, m=self.m, t=self.m + 1e9))

    def start(self, attempt: int = 1, from_step: int = 0, total: int = 100) -> None:
        self.tell(ev.WorkerStart(boot_id=boot_id(), attempt=attempt, pid=1))
        self.tell(plan(attempt, from_step, total))
        self.tell(ev.PhaseEvent(name="training"))

    def steps(self, first: int, last: int, seconds: float = 0.5, loss: float = 1.0) -> None:
        for number in range(first, last + 1):
            self.tell(
                ev.Step(step=number, epoch=0.1, loss=loss, learning_rate=1e-3, tokens=50, seconds=seconds), seconds
            )

    def state(self, liveness: Liveness = BOTH) -> RunState:
        return self.fold.snapshot(liveness, now_m=self.m, now_t=self.m + 1e9)


def test_nothing_is_known_before_the_first_step() -> None:
    story = Story()
    story.start()
    state = story.state()
    assert state.speed.it_per_second is None
    assert state.eta is None
    assert state.last_loss is None


def test_speed_leaves_pauses_out_and_overall_counts_them() -> None:
    story = Story()
    story.start()
    story.steps(1, 10)
    story.tell(ev.PhaseEvent(name="evaluating"))
    story.tell(ev.Eval(step=10, loss=1.0, seconds=5.0), seconds=5.0)
    story.tell(ev.PhaseEvent(name="training"))
    story.steps(11, 20)
    state = story.state()
    assert state.speed.it_per_second == pytest.approx(2.0)
    assert state.speed.overall_it_per_second == pytest.approx(20 / 15)
    assert state.speed.tokens_per_second == pytest.approx(100.0)
    assert dict(state.seconds_by_phase)["evaluating"] == pytest.approx(5.0)


def test_time_left_includes_the_pauses_seen_so_far() -> None:
    story = Story()
    story.start(total=40)
    story.steps(1, 10)
    assert story.state().eta is not None
    story.tell(ev.Eval(step=10, loss=1.0, seconds=5.0), seconds=5.0)
    story.steps(11, 20)
    eta = story.state().eta
    assert eta is not None
    assert eta.seconds == pytest.approx(20 * (0.5 + 5 / 20))
    assert eta.finish_t == pytest.approx(story.m + 1e9 + eta.seconds)
    assert "evals" in eta.includes


def test_a_resumed_run_counts_session_steps_only() -> None:
    story = Story()
    story.start(total=1000)
    story.steps(1, 900, seconds=0.01)
    story.tell(ev.WorkerStart(boot_id=boot_id(), attempt=2, pid=2), seconds=3600)
    story.tell(plan(2, 900, 1000))
    story.tell(ev.PhaseEvent(name="training"))
    assert story.state().speed.it_per_second is None
    story.steps(901, 902, seconds=2.0)
    state = story.state()
    assert state.speed.it_per_second == pytest.approx(0.5)
    assert state.eta is not None
    assert state.eta.seconds == pytest.approx(98 * 2.0)


def test_steps_after_the_checkpoint_are_dropped_by_a_resume_and_old_snapshots_stay() -> None:
    story = Story()
    story.start()
    story.steps(1, 23, loss=1.0)
    story.tell(ev.Eval(step=20, loss=0.9))
    story.tell(ev.Eval(step=22, loss=0.8))
    before = story.state()
    story.start(attempt=2, from_step=20)
    story.steps(21, 25, loss=0.5)
    state = story.state()
    assert list(state.curve.step[: state.curve.length]) == list(range(1, 26))
    assert state.curve.loss[20] == 0.5
    assert [e.step for e in state.evals] == [20]
    assert before.curve.length == 23
    assert before.curve.loss[22] == 1.0
    assert state.total_tokens == 25 * 50


def test_nan_is_kept_and_marked() -> None:
    story = Story()
    story.start()
    story.steps(1, 1)
    story.tell(ev.Step(step=2, epoch=0, loss=None, learning_rate=0, bad="inf"))
    state = story.state()
    assert math.isnan(state.curve.loss[1])
    assert state.last_loss is None
    assert state.bad_steps == ((2, "inf"),)


def test_nan_is_never_the_best_eval() -> None:
    story = Story()
    story.start()
    for step, loss in ((1, 0.5), (2, None), (3, 0.4)):
        story.tell(ev.Eval(step=step, loss=loss))
    best = story.state().best_eval
    assert best is not None
    assert best.step == 3


@pytest.mark.parametrize(
    ("word", "exit_", "liveness", "expected"),
    [
        (None, None, BOTH, "starting"),
        ("running", None, BOTH, "running"),
        ("running", None, Liveness(False, True), "running"),
        ("running", None, Liveness(True, False), "running"),
        ("running", None, NOBODY, "interrupted"),
        ("running", "finished", NOBODY, "finished"),
        ("running", "stopped", NOBODY, "stopped"),
        ("stopping", "failed", NOBODY, "failed"),
        ("finished", "finished", NOBODY, "finished"),
        ("finished", "finished", Liveness(True, False), "finished"),
        ("interrupted", None, NOBODY, "interrupted"),
    ],
)
def test_the_states_name(word: ev.State | None, exit_: str | None, liveness: Liveness, expected: str) -> None:
    story = Story()
    story.start()
    if word:
        story.tell(ev.StateEvent(state=word))
    if exit_:
        story.tell(ev.Exit(outcome=exit_, step=1))  # type: ignore[arg-type]
    assert story.state(liveness).state == expected


def test_a_run_never_started_says_so() -> None:
    state = Fold(INFO).snapshot(NOBODY, now_m=1.0, now_t=1.0)
    assert state.state == "interrupted"
    assert "never started" in state.cause


def test_a_living_supervisor_after_a_failed_attempt_is_its_word() -> None:
    story = Story()
    story.start()
    story.tell(ev.StateEvent(state="failed", cause="x"))
    story.tell(ev.StateEvent(state="starting", cause="restart 1 of 3"))
    assert story.state(BOTH).state == "starting"


def test_peaks_are_kept_over_samples() -> None:
    story = Story()
    story.start()
    for used in (5, 9, 7):
        story.tell(ev.Hardware(gpus=[ev.HardwareGpu(index=0, uuid="GPU-a", used=used, this_run=used - 1, total=10)]))
        story.tell(ev.Memory(phase="training", gpus=[ev.MemoryGpu(index=0, peak_allocated=used * 2, weights=3)]))
    state = story.state()
    assert state.hardware_peaks[0].used == 9
    assert state.hardware_peaks[0].this_run == 8
    assert state.memory_peaks[0].peak_allocated == 18


def test_checkpoints_come_and_go() -> None:
    story = Story()
    story.start()
    for step in (10, 20, 30):
        story.tell(ev.Checkpoint(step=step, path=f"checkpoints/checkpoint-{step}", bytes=1, seconds=0.1))
    story.tell(ev.CheckpointRemoved(step=10, path="checkpoints/checkpoint-10", reason="rotation"))
    assert [c.step for c in story.state().checkpoints] == [20, 30]


def test_a_run_ends_when_its_worker_did_whoever_adopts_it_later() -> None:
    story = Story()
    story.start()
    story.tell(ev.Exit(outcome="finished", step=1), seconds=10.0)
    ended = story.m + 1e9
    story.tell(ev.StateEvent(state="running", cause="adopted"), seconds=9000.0)
    story.tell(ev.StateEvent(state="finished"))
    assert story.state(NOBODY).ended_t == ended

    story.tell(ev.StateEvent(state="starting"))
    assert story.state(BOTH).ended_t is None
    story.tell(ev.StateEvent(state="failed", cause="no card"), seconds=5.0)
    assert story.state(NOBODY).ended_t == story.m + 1e9, "an attempt without a worker ends with its supervisor's word"
