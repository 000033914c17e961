"""Who may use how much of a partition: time by tenant, and what trees cost."""
