"""Search one's own pictures, and see why they match."""
