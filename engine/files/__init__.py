"""Files as tables: by their paths, in folders, compressed, and on servers."""
