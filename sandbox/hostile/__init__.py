"""Programs that mean harm, and what must be true whenever one of them has run.

A fixed list (`programs.txt`) and a generator of any number more. The tests run the list and
some hundred generated ones; `python -m sandbox.hostile --count 100000` runs more.
"""
