"""Plan of a call, read from `params/` and checked before any job starts; nothing here needs torch."""
