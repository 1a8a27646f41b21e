"""The Machine controller: one host from its first reference to an infrastructure until its Node is gone."""
