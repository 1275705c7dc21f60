"""Write attempts with what should become of each, and how well they were decided."""
