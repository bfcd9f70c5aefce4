"""Elliptical attention inside other libraries. Nothing here imports them before the user does."""
