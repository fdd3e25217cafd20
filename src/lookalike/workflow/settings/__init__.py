"""Settings: the YAML files below ``params/`` as typed models, and how they are laid over each other."""
