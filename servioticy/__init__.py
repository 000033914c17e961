"""The kernel: nouns, rules, ports and the adapters that the programs share."""
