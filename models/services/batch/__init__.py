"""Models that answer large jobs later."""
