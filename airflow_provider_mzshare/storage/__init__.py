"""STORAGE: definite collections, how records become their rows, and the apps that write them."""
