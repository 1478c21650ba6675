"""The interface between models and their callers: the protocol, images, events."""
