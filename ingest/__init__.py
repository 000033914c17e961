"""The way of updates into the log, whatever they come by: who may send, what is taken, how much.

`ingest.py` is the way itself; the API's edge and the broker each call it from a file.
"""
