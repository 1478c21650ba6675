"""Registers ingredients with DataFusion: as UDFs, as expressions, by decorator."""
