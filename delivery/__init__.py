"""The push program: what the pipeline emitted, to whoever watches."""
