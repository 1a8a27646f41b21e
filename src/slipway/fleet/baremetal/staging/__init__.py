"""The next image on hosts before they boot it: which host is to have which one, and asking them for it."""
