"""The Presets place."""
from __future__ import annotations
from llmtui.tui.screens.place import Place
class PresetsPlace(Place, inherit_bindings=False):
    PLACE = "presets"
