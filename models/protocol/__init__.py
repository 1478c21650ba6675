"""What every model and its callers share: the interface, images, events."""
