"""Benchmarks: each a ratio to a bare script in the same run, interleaved, median and spread.

`python -m bench` runs what a CPU can show; `python -m bench.gpu` what needs a card.
"""
