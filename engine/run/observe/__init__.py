"""Progress lines, and the measured rates of models."""
