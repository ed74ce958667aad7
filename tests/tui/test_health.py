"""What is wrong is said in words, and nothing is said when nothing is known."""

from __future__ import annotations

from dataclasses import replace

from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunInfo
from llmtui.core.runs.state import Liveness, PhaseState, RunState, Speed
from llmtui.tui.health import health
from tests.tui.test_charts import curve_of

INFO = RunInfo(id="x", name="x", preset="x", created=0.0)
ALIVE = Liveness(True, True)


def living(**changed: object) -> RunState:
    """A healthy living run, with changes."""
    state = RunState(
        info=INFO,
        state="running",
        liveness=ALIVE,
        phase=PhaseState("training", 0, None, "", 100.0),
        curve=curve_of([2.0, 1.9]),
        step=2,
        speed=Speed(it_per_second=2.0),
        last_step_m=200.0,
        now_m=201.0,
        hardware=ev.Hardware(disk_free=300 << 30),
    )
    return replace(state, **changed)  # type: ignore[arg-type]


def said(state: RunState) -> str:
    return "; ".join(f"{finding.severity}: {finding.text}" for finding in health(state))


def test_a_healthy_run_says_so() -> None:
    assert said(living()).startswith("good: healthy: no NaN, last step 1 s ago")


def test_nan_is_said_with_its_step() -> None:
    assert "bad: loss was NaN at step 7, 2 steps in all" in said(living(bad_steps=((3, "nan"), (7, "nan"))))


def test_a_loss_of_exactly_zero_is_never_good_news() -> None:
    assert "exactly 0" in said(living(curve=curve_of([0.0])))


def test_silence_is_measured_against_the_usual_pace() -> None:
    assert "no step" not in said(living(now_m=230.0))
    assert "bad: no step for 2 min 00 s" in said(living(now_m=320.0))
    slow = living(now_m=320.0, speed=Speed(it_per_second=1 / 60))
    assert "no step" not in said(slow)


def test_silence_in_an_evaluation_is_no_silence() -> None:
    assert "no step" not in said(living(now_m=900.0, phase=PhaseState("evaluating", 1, 9, "", 800.0)))


def test_a_checkpoint_that_will_not_fit_is_foreseen() -> None:
    saved = (ev.Checkpoint(step=1, path="c", bytes=20 << 30, seconds=1.0),)
    assert "may not fit" in said(living(checkpoints=saved, hardware=ev.Hardware(disk_free=21 << 30)))
    assert "only 2 GiB disk free" in said(living(hardware=ev.Hardware(disk_free=2 << 30)))


def test_a_lost_card_and_a_slowed_one_are_named() -> None:
    gpus = [
        ev.HardwareGpu(index=0, lost=True),
        ev.HardwareGpu(index=1, throttle_reasons=["hw_thermal_slowdown", "gpu_idle"]),
    ]
    text = said(living(hardware=ev.Hardware(gpus=gpus)))
    assert "GPU 0 is lost" in text and "GPU 1 is slowed down: hw_thermal_slowdown" in text


def test_an_ended_run_has_no_health() -> None:
    assert health(living(state="finished", liveness=Liveness(False, False), phase=None)) == []
