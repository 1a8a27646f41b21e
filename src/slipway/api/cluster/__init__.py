"""The Cluster API: its kinds, their types in each version, the conversions between versions and the CRDs made from the types."""
