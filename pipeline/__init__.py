"""Real-time computation of composite streams: the one generic Spark job."""
