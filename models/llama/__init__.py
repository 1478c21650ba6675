"""Models in process, by llama.cpp."""
