"""Everything without a screen: presets, data, runs, processes, hardware, forecast, worker.

Nothing here imports Textual; only `core.worker` imports torch.
"""
