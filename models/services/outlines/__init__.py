"""Models of the library outlines: transformers, vLLM offline, MLX and others under constraints."""
