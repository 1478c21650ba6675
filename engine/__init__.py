"""BlendFusion: language-model functions inside SQL and DataFrames, on Apache DataFusion."""
