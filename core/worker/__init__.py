"""The only room that imports torch: model, training, checkpoints, samples, result, merge.

It talks to the rest of the world through the event log and request files alone.
"""
