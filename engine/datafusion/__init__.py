"""All contact with DataFusion: contexts, streams, Substrait, threads and errors."""
