"""What a call will run, read from `params/` and checked before any job starts; nothing here needs torch."""
