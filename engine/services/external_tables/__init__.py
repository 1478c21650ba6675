"""CREATE EXTERNAL TABLE: the columns of CSV files, and no Parquet files of a lake."""

from blendfusion.services import Service

SERVICE = Service(external_tables="statement")
