"""Workers on a Ray cluster: one actor for each worker slot, replaced when it is lost."""
