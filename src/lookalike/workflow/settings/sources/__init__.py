"""What the package's own sources say, read without importing them."""
