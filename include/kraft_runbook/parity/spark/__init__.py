"""Parity in Spark: two data sources that give the same canonical rows, and the job that compares them. The only
importer of pyspark.
"""
