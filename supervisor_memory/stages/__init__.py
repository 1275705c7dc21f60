"""The operators that recipes are made of, a folder for each stage."""
