"""The inventory of hosts: how they register, what is known of them, and the one Secret by which each is told what to do."""
