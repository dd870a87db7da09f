"""`fairlead sweep`: many models, each in a process of its own, and a page about all of them."""
