"""The four stages, one file and one verb each."""
