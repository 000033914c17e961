"""The second way between the platform and programs: lists in a store in memory."""
