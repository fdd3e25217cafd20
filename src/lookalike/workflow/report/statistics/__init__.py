"""What few measurements let one conclude."""
