"""The operator of windows: updates go into panes, and windows that end come out."""
