"""The console: pages for people, made of what the public API answers.

It asks the API by HTTP alone, as anybody does, in the same process (`asking.py`). What is its own
are sessions, and how a page looks. The API knows nothing of it but where it is mounted.
"""
