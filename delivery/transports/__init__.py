"""The ways in which updates reach clients: each file keeps to `delivery/transport.py`."""
