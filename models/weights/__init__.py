"""Files of model weights: where they are and what they hold."""
