"""The engine ``ray``: one actor per worker, replaced if it is lost."""
