"""Connections to an MQTT broker of the operator's own, each of which is a client of ours."""
