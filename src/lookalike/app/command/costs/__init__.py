"""What a call will cost, told before it starts: jobs, steps, hours and bytes on disk."""
