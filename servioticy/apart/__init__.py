"""Computing in another process of ours, which may be ended: asking here, answering there."""
