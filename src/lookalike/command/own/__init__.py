"""Commands of people with own pictures."""
