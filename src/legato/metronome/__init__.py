"""The metronome: a streaming server that emits tokens on a known schedule and logs what it did.

It is a target and knows nothing of the code that measures it.
"""
