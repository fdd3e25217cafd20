"""What runs a call: jobs and their processes, devices, locks, DVC, and the digest of the code behind a result."""
