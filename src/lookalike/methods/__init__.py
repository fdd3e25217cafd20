"""The four methods, one subpackage per paper."""
