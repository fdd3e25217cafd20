"""Networks that embed images."""
