"""Rewrites DataFusion's plans so that models see few values, and cuts them into stages."""
