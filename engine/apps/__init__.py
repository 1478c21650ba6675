"""Programs for people on top of sessions: the command, the page in a browser, notebooks."""
