"""What the Qdrant backend is made of: points, calls, searches, erasing, moving."""
