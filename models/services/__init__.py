"""Optional models and stores: each folder can be taken out."""
