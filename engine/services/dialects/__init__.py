"""Translates queries in the dialects of other systems to BlendFusion's SQL."""
