"""Reports on measured runs: the papers' tables and figures, claims, choices of fidelity, explanations and the gate."""
