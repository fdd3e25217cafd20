"""Cost of a call, told before it starts: jobs, steps, hours and bytes on disk."""
