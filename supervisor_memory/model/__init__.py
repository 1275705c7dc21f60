"""The nouns of the library: frozen values, without I/O and without a clock."""
