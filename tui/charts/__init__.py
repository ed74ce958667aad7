"""Curves as cells: down-sampling, axes, the canvas and the drawing of a chart. Pure; no Textual.

An own canvas, after trying plotext 6.1: importing it takes as long as importing Textual, and it has no
min–max down-sampling and one colour for the cells that two series share.
"""
