"""The app: search, explanation, recommendation and export of own pictures, and the command."""
