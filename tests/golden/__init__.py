"""What memory decides today, frozen: a move or a rename inside the package changes no byte of it."""
