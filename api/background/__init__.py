"""What goes on after requests were answered: in one thread of one API process at a time."""
