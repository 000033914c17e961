"""Topics for MQTT and STOMP clients: two protocols on one port, and no store of their own."""
