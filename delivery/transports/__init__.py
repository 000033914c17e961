"""The ways in which updates reach clients: each is a file that keeps to `transport.py`."""
