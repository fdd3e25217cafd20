"""The package's own sources, read without importing them."""
