"""A POSIX shell for machines that are not there: scripts are read as ``sh`` reads them, and act on a machine in memory.

What it does not know it refuses in so many words; nothing is passed over.
"""
