"""The NumPy backend: reference, shape oracle and light actor."""
