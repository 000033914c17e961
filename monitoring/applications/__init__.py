"""Applications that are not ours: deployed to their engine, woven as they load, watched."""
