"""A package of a stranger's: a store and a recipe that are found by their entry points alone."""
