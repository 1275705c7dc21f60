"""Records in Qdrant."""
