"""Speech to text: audio among the values of requests, and models that transcribe it."""
