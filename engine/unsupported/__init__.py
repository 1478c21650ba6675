"""Plans that Substrait cannot carry, cut into tables and nested stages."""
