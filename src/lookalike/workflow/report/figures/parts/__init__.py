"""What figures have in common."""
