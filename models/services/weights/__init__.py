"""Files of model weights: locations, downloads and metadata."""
