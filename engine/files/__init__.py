"""Files as tables: by their paths, in folders, compressed, as spreadsheets, and on servers."""
