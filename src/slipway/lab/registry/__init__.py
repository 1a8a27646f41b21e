"""A registry of the lab, with the OS images that hosts are upgraded to."""
