"""Where tables lie: local paths, URLs, object stores, folders of files, tables of lakes; private
files."""
