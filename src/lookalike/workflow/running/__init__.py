"""Running of a call: jobs and their processes, devices, locks and DVC."""
