"""Figures of the contextual loss."""
