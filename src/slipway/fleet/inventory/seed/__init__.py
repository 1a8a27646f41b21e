"""Images with which hosts register: a NoCloud seed that cloud-init reads at the first boot, as a file to be downloaded."""
