"""Reproduce, compare and explain deep metric learning.

Importing the package costs nothing: public names are loaded when they are first used, so that Snakemake can plan
hundreds of jobs without paying for a torch import.
"""
