"""What the SQLite backend is made of: tables, words, vectors, group commit, salvage."""
