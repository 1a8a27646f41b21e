"""The MachineSet controller: as many Machines of one template as are wanted."""
