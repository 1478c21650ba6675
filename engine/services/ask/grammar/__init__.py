"""A grammar of the queries that plan over a catalogue, for decoders that take Lark's form."""
