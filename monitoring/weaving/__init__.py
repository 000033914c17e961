"""Weaving: functions measure themselves while it lasts, and are as they were behind it."""
