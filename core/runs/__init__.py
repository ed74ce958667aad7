"""The run directory and what can be read from it: events, locks, the run's state, its summary.

Pure reading and folding; no torch, no processes started.
"""
