"""Recipes: what each computes, and what all of them promise."""
