"""The ground room: checks, files, paths, tensors and text, used by all wings."""
