"""Figures of similarity attention."""
