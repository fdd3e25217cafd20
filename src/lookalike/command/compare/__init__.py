"""What differs between two runs, or between two rows of tables."""
