"""Which method to take for a folder of own pictures, by what was measured on classes held out of it."""
