"""One simulated machine: its files, its programs and services, its images, and how it boots."""
