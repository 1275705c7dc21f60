"""A SQLite file shared by threads and processes: its writer, its readers, its place."""
