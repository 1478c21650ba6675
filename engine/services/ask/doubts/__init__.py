"""The rules that hold a drafted query against its question; ``table`` lists them."""
