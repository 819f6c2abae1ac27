"""Composition root: the only package that knows every app."""
