"""Recommendation of a method for a folder of own pictures, by measurements on classes held out of it."""
