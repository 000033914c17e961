"""What goes on after its request was answered: fleets and dynamic groups."""
