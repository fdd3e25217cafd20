"""What measured runs say, apart from the papers' tables: of claims, of the choices of fidelity, and of the gate."""
