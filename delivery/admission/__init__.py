"""Who may come, and how many: requests are read, decided on and counted before anybody watches."""
