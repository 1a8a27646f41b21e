"""The bare-metal provider of Cluster API: hosts of pools become nodes by reprovision plans, and go back by clean plans."""
