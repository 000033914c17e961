"""Reading documents: in processes that may be ended, and what has been understood of them."""
