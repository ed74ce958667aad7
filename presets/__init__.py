"""Bundled data: presets, the demo's model and rows, published reference results. No code."""
