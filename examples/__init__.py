"""The tables of the demonstration, which the package brings along."""
