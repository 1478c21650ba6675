"""Stores of answers that machines share: PostgreSQL, folders, object stores."""
