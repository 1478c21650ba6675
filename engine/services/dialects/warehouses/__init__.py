"""Translates the language-model functions of Snowflake, BigQuery and Databricks."""
