"""The page of a scale: pairs to look at, tables, figures and claims, as a folder that opens without a server."""
