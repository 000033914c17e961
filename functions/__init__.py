"""Workflows' atoms on their way from queue to queue: instances that live while something waits.

Start at `__main__.py`, which waits and costs little; `working.py` is the process that it runs
while there is work, and `dispatcher.py` decides in it who works.
"""
