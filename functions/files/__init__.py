"""Files as the source of workflows: stores that have them, and what is cut out of each.

`source.py` is the two steps; `folder.py` and `bucket.py` are the stores, `records.py` and
`columns.py` what cuts. A look at a store, and each file, is an atom of a queue of its own: so a
file is cut a portion at a time, each by whoever is free, and what one was killed over another
begins again where the last portion ended.
"""
