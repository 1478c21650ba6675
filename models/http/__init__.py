"""Models behind servers with OpenAI's protocol."""
