"""Will it fit, and what will it take? Arithmetic at once, marked ≈: nothing is loaded, no torch."""

from __future__ import annotations

from llmtui.core.forecast.estimate import Forecast, GpuVerdict, forecast
from llmtui.core.forecast.memory import Part
from llmtui.core.forecast.text import forecast_lines

__all__ = ["Forecast", "GpuVerdict", "Part", "forecast", "forecast_lines"]
