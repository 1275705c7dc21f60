"""Read one text: statements, definitions, dates, names, people, SQL. Pure functions."""
