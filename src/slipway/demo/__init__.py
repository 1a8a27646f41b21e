"""The main job in under a minute: a bare-metal cluster made and upgraded by replacing every node, on simulated hosts, in one process."""
