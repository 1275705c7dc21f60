"""What `benchmarks/quality.py` is made of, and the sets that it reads."""
